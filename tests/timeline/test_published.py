"""Published measurements beside simulated ones. The numbers here are what the model gives today: a change that moves
them has to say why."""

from statistics import median

import pytest

from onelaunch.timeline.published import compare, engine_parameters, not_simulated, published_rows

MEDIAN, LEFT_OUT = 0.051, 0.074
WRONG = {"pegainfer", "pegainfer-preallocated", "transformers-0.6b-64"}
COMPARED = [compare(row) for row in published_rows()]


def test_at_least_twelve_rows_state_all_that_is_needed() -> None:
    assert len(COMPARED) >= 12
    for found in COMPARED:
        assert found.row.source
        assert found.row.eager_ms >= found.row.graph_ms > 0
    assert all(row.why for row in not_simulated())
    assert len({found.row.id for found in COMPARED}) == len(COMPARED)


def test_the_median_error_is_as_the_book_says() -> None:
    errors = [abs(error) for found in COMPARED for error in (found.eager_error, found.graph_error)]
    assert median(errors) == pytest.approx(MEDIAN, abs=0.002)


def test_predicted_from_the_other_rows_it_is_as_the_book_says() -> None:
    errors = []
    for found in COMPARED:
        eager, graph = found.row.left_out_ms or (found.eager.step_us / 1e3, found.graph.step_us / 1e3)
        errors += [abs(eager / found.row.eager_ms - 1), abs(graph / found.row.graph_ms - 1)]
    assert median(errors) == pytest.approx(LEFT_OUT, abs=0.002)


def test_gain_or_no_gain_is_right_except_where_the_book_says() -> None:
    assert {found.row.id for found in COMPARED if not found.right_sign} == WRONG


def test_no_engine_has_more_fitted_parameters_than_numbers() -> None:
    for name in {found.row.engine for found in COMPARED}:
        numbers = 2 * sum(found.row.engine == name for found in COMPARED)
        assert len(engine_parameters(name).fitted) <= numbers / 2, name
        assert all(
            (found.row.left_out_ms is None) == (not engine_parameters(name).fitted)
            for found in COMPARED
            if found.row.engine == name
        )


def test_an_unknown_engine_names_those_there_are() -> None:
    with pytest.raises(KeyError, match=r"llama\.cpp"):
        engine_parameters("ollama")
