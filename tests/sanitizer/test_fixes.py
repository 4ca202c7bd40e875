"""What a finding says to write instead fits what was found."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from onelaunch import emulator as cuda
from onelaunch import sanitize
from onelaunch.sanitizer import Finding


def only_finding(step: Callable[[Any], torch.Tensor], change: Callable[[Any, int], None]) -> Finding:
    """The only finding where ``change(state, i)`` comes before ``step(state)``."""
    state = SimpleNamespace(x=torch.arange(6.0).view(3, 2), cache=torch.zeros(3, 2), n=1, flag=False, dim=0)
    report = sanitize(lambda i: change(state, i), lambda: step(state), owners=state)
    assert len(report) == 1, str(report)
    return report.findings[0]


def set_n(state: Any, i: int) -> None:
    state.n = 1 + i % 2


def write_row(state: Any) -> torch.Tensor:
    state.cache[state.n].copy_(state.x[0] + 1)
    return state.cache.sum(0)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (lambda s: s.x * s.n, "Give the operator a tensor in place of the number: torch.full((), n)"),
        (lambda s: s.x[s.n] * 2, "read the place that it names with index_select"),
        (write_row, "write to the place that it names with index_copy_"),
        (lambda s: s.x[: s.n].sum(), "let the kernels work on all of x, and mask with it what does not count"),
        (lambda s: s.x.roll(s.n), "Record a graph for each value"),
    ],
)
def test_a_frozen_value_is_mended_by_what_its_operator_takes(step: Any, said: str) -> None:
    finding = only_finding(step, set_n)
    assert (finding.kind, finding.tensor) == ("frozen-value", "n")
    assert said in finding.fix


def test_a_tensor_that_grew_is_not_to_be_copied_into_the_old_one() -> None:
    def grow(state: Any, i: int) -> None:
        if i > 1:
            state.x = torch.ones(4, 2)

    finding = only_finding(lambda s: s.x.sum(), grow)
    assert (finding.kind, finding.tensor) == ("moved-address", "x")
    assert finding.fix.startswith("Make x once, as large as it may become")


class Module:
    def __del__(self) -> None:
        with contextlib.suppress(RuntimeError):
            cuda.synchronize()


def test_what_the_end_of_an_object_calls_is_said_to_be_its() -> None:
    def step(state: Any) -> torch.Tensor:
        Module()
        return state.x * 2

    finding = only_finding(step, lambda state, i: None)
    assert finding.kind == "host-sync"
    assert "the end of an object called it" in finding.why
    assert "keep the collector off" in finding.fix


def test_what_another_thread_calls_is_said_to_be_its() -> None:
    def step(state: Any) -> torch.Tensor:
        thread = threading.Thread(target=cuda.synchronize, name="prefetch")
        thread.start()
        thread.join()
        return state.x * 2

    finding = only_finding(step, lambda state, i: None)
    assert finding.kind == "host-sync"
    assert finding.why.endswith("it was called in another thread, 'prefetch'")
    assert "thread_local" in finding.fix
