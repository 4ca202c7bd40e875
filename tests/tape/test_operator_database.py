"""PyTorch's own operators, captured with one sample and replayed with other values: as eager, or refused by a rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from onelaunch.tape import RULES
from onelaunch.viz import measured
from operator_page import PAGE, by_dtype, figures, page, refusals
from operator_samples import Sample, draw, first_pair, geometry, name_of, operators, same_bits, seeds_from_outside
from operator_trial import DTYPES, NO_CONTENT, pairs, said_of, spread, trial


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operator_replays_as_eager_or_is_refused_as_was_measured(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONELAUNCH_EXECUTOR", "python")  # that all of them give the same bits is tested elsewhere
    data = measured("operators")
    found, expected = {}, {}
    with seeds_from_outside():
        for op in operators():
            measurement = data["rows"].get(name_of(op), {}).get(dtype)
            if measurement is not None and DTYPES[dtype] in op.dtypes:
                pair = first_pair(op, DTYPES[dtype])
                if pair is not None:
                    found[name_of(op)] = said_of(trial(op, *pair, 1, op.name not in NO_CONTENT))
                    expected[name_of(op)] = measurement["first"]
    assert len(found) >= {"float32": 600, "int64": 400, "complex64": 2}[dtype]
    assert {name: said for name, said in found.items() if said[0] == "different"} == {}
    if data["versions"]["torch"].partition("+")[0] == torch.__version__.partition("+")[0]:
        assert {name: said for name, said in found.items() if said != expected[name]} == {}


def operator_that(step: Any) -> Any:
    """``step`` on one tensor, captured with ones and replayed with twos."""
    return trial(step, Sample([torch.ones(3)]), Sample([torch.full((3,), 2.0)]), replays=2)


def test_the_trial_notices_what_a_replay_does_otherwise() -> None:
    counter = iter(range(100))
    assert operator_that(lambda x: x * 2)["outcome"] == "bitwise"
    assert operator_that(lambda x: x.sum().item())["outcome"] == "refused"
    assert operator_that(lambda x: x.add_(1))["outcome"] == "bitwise"
    frozen = operator_that(lambda x: x * torch.full((), x.numpy().sum().item()))
    assert (frozen["outcome"], frozen["refusals"]) == ("refused", ("host-numpy", ".numpy()"))
    kept = torch.ones(3)
    assert operator_that(lambda x: x + kept.add_(1))["outcome"] == "different"
    assert operator_that(lambda x: x * next(counter))["outcome"] == "different"


def test_values_are_copied_under_whatever_shape_a_sample_has() -> None:
    expanded = Sample([torch.ones(3).expand(2, 3), torch.zeros(4)[::2]])
    other = Sample([torch.full((3,), 2.0).expand(2, 3), torch.ones(4)[::2]])
    assert expanded.copy().fill(expanded) == 0
    assert expanded.fill(other) == 2
    assert all(same_bits(a, b) for a, b in zip(expanded.tensors(), other.tensors(), strict=True))
    assert not same_bits(torch.tensor(0.0), torch.tensor(-0.0))
    assert same_bits(torch.tensor(float("nan")), torch.tensor(float("nan")))
    assert spread(list(range(10)), 4) == [0, 2, 5, 7]


def test_at_least_97_percent_of_what_a_gpu_could_capture_replays_and_nothing_replays_wrongly() -> None:
    data = measured("operators")
    assert figures(data)["percent"] >= 97
    for found in (data["rows"], data["in_place"]):
        for name, row in found.items():
            assert row["outcome"] != "different", name
            for rule, _ in refusals(row):
                assert rule in RULES, name
            if row["outcome"] == "not run":
                assert any(each.get("reasons") for each in (row, *by_dtype(row))), name


def test_the_page_is_what_was_measured() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(measured("operators"))


def test_samples_are_the_same_each_time() -> None:
    op = next(op for op in operators() if op.name == "matmul")
    for seed in (0, 1):
        for a, b in zip(draw(op, torch.float32, seed), draw(op, torch.float32, seed), strict=True):
            assert geometry(a.tensors()[0]) == geometry(b.tensors()[0])
    whole, first = pairs(op, torch.float32, 1)[0], first_pair(op, torch.float32)
    assert first is not None
    for mine, its in zip(whole, first, strict=True):
        assert all(same_bits(a, b) for a, b in zip(mine.tensors(), its.tensors(), strict=True))
