"""What is made of timings: the right line, an interval of the right size, and rounds that fit the budget."""

from __future__ import annotations

import numpy as np
import pytest

from onelaunch.timeline.fit import Estimate, digits, estimate, fit_line, resampled_medians
from onelaunch.timeline.timing import Statement, check_budget, take_rounds

SIZES = (1, 512, 1024, 2048, 4096, 8192)
START_US, EACH_US = 1.5, 0.0002


def timings(seed: int, rounds: int = 40, noise: float = 0.05, interrupted: float = 0.0) -> np.ndarray:
    """Rounds of a host that takes START_US and EACH_US for each element, with noise and calls that take ten times."""
    random = np.random.default_rng(seed)
    exact = START_US + EACH_US * np.array(SIZES)
    table = exact * (1 + noise * random.standard_normal((rounds, len(SIZES))))
    return np.where(random.random(table.shape) < interrupted, 10 * table, table)


def test_exact_times_give_the_line_itself() -> None:
    line = fit_line(SIZES, resampled_medians(timings(0, noise=0.0)), "element")
    for found, expected in ((line.start, START_US), (line.each, EACH_US)):
        assert found.us == pytest.approx(expected)
        assert found.low_us == pytest.approx(expected)
        assert found.high_us == pytest.approx(expected)
    assert line.misfit == pytest.approx(0, abs=1e-9)
    assert line.at(1000) == pytest.approx(START_US + 1000 * EACH_US)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """95% of 200 is 190, with a standard deviation of 3. A percentile bootstrap of a median is a little off."""
    runs = [fit_line(SIZES, resampled_medians(timings(seed), draws=300, seed=seed), "element") for seed in range(200)]
    for found, truth in (([run.start for run in runs], START_US), ([run.each for run in runs], EACH_US)):
        held = sum(each.low_us <= truth <= each.high_us for each in found)
        assert 180 <= held <= 199


def test_more_rounds_narrow_the_interval_as_the_square_root() -> None:
    few, many = (
        np.mean([(line.high_us - line.low_us) for line in starts])
        for starts in (
            [fit_line(SIZES, resampled_medians(timings(s, rounds), draws=200), "element").start for s in range(20)]
            for rounds in (20, 180)
        )
    )
    assert few / many == pytest.approx(3, rel=0.25)


def test_interrupted_calls_hardly_move_the_line() -> None:
    line = fit_line(SIZES, resampled_medians(timings(1, rounds=100, interrupted=0.1)), "element")
    assert line.start.us == pytest.approx(START_US, rel=0.05)
    assert line.each.us == pytest.approx(EACH_US, rel=0.05)


def test_times_that_lie_on_no_line_are_said_to() -> None:
    table = timings(2, noise=0.001)
    table[:, -1] *= 1.5  # the largest does not fit into the cache
    assert fit_line(SIZES, resampled_medians(table), "element").misfit > 0.15


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([[1.0, 2.0]] * 9, "at least 10 rounds are needed"),
        ([1.0] * 20, "at least 10 rounds are needed"),
        ([[1.0, 0.0]] * 20, "above zero"),
        ([[1.0, float("nan")]] * 20, "above zero"),
    ],
)
def test_timings_that_say_nothing_are_refused(table: list[object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        resampled_medians(table)


def test_a_line_through_two_places_is_refused() -> None:
    medians = resampled_medians(np.ones((10, 2)))
    with pytest.raises(ValueError, match="three or more places"):
        fit_line((1, 2), medians, "element")
    with pytest.raises(ValueError, match="three or more places"):
        fit_line((1, 2, 3), medians, "element")


def test_numbers_are_told_with_three_digits() -> None:
    assert [digits(value) for value in (0.0002134, 1.4242, 12.345, 1234.5, 0)] == [
        "0.000213",
        "1.42",
        "12.3",
        "1,234",
        "0",
    ]
    assert str(Estimate(1.4, 1.35, 1.5)) == "1.40 µs (1.35 to 1.50)"


class Laptop:
    """A clock that goes on when something is called, and a machine that gets slower by the minute."""

    def __init__(self, slower: float = 0.0) -> None:
        self.now, self.slower, self.called = 0.0, slower, dict.fromkeys("abc", 0)

    def work(self, name: str) -> None:
        self.called[name] += 1
        self.now += {"a": 1e-6, "b": 2e-6, "c": 300e-6}[name] * (1 + self.slower * self.now)

    def subjects(self) -> dict[str, Statement]:
        return {n: Statement(f"work({n!r})", {"work": self.work}, clock=lambda: self.now) for n in "abc"}


def test_a_slow_drift_leaves_the_ratios_alone() -> None:
    laptop = Laptop(slower=1.0)  # twice as slow after a second
    table = take_rounds(laptop.subjects(), 1.5, lambda: laptop.now)
    assert table[-1, 0] > 2 * table[0, 0]
    a, b, c = np.median(table, axis=0)
    assert b / a == pytest.approx(2, rel=0.01)
    assert c / a == pytest.approx(300, rel=0.01)


@pytest.mark.parametrize("budget_s", [0.1, 1.0])
def test_the_budget_is_used_and_kept(budget_s: float) -> None:
    laptop = Laptop()
    table = take_rounds(laptop.subjects(), budget_s, lambda: laptop.now)
    assert 0.9 * budget_s < laptop.now <= budget_s
    assert len(table) >= 10


def test_the_shortest_budget_still_gives_enough_rounds_for_an_interval() -> None:
    laptop = Laptop()
    table = take_rounds(laptop.subjects(), 1e-9, lambda: laptop.now)
    assert len(table) == 10
    estimate(resampled_medians(table)[:, 0])


def test_short_calls_are_timed_many_at_a_time() -> None:
    laptop = Laptop()
    take_rounds(laptop.subjects(), 0.1, lambda: laptop.now)
    assert laptop.called["a"] > 400 * laptop.called["c"] / 5


@pytest.mark.parametrize("budget_s", [0, -1, float("nan"), float("inf"), 1e9, True, "20", None])
def test_a_budget_that_makes_no_sense_is_refused(budget_s: object) -> None:
    with pytest.raises(ValueError, match="the budget must be a number of seconds above 0"):
        check_budget(budget_s)  # type: ignore[arg-type]
