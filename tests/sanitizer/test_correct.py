"""Correct steps that look odd give an empty report."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from onelaunch import emulator, sanitize

Checked = tuple[Any, ...]  # prepare, step, and the keywords of sanitize


def ring_buffer() -> Checked:
    ring, head, x = torch.zeros(3, 2), torch.zeros(1, dtype=torch.long), torch.zeros(1, 2)

    def prepare(i: int) -> None:
        x.fill_(i)

    def step() -> torch.Tensor:
        ring.index_copy_(0, head, x)
        head.add_(1).remainder_(3)
        return ring.sum(0)

    return prepare, step, {}


def cache_written_in_part() -> Checked:
    cache, slots, x = torch.full((9, 2), torch.nan), torch.zeros(2, dtype=torch.long), torch.zeros(2, 2)

    def prepare(i: int) -> None:
        slots.copy_(torch.tensor([i, i + 4]))
        x.normal_()

    def step() -> torch.Tensor:
        cache[slots] = x
        return cache.index_select(0, slots) * 2

    return prepare, step, {"owners": {"cache": cache}}


def state_in_place() -> Checked:
    h, x = torch.zeros(3), torch.ones(3)

    def step() -> torch.Tensor:
        h.mul_(0.5).add_(x)
        return h

    return lambda i: x.fill_(i), step, {}


def default_generator() -> Checked:
    x = torch.zeros(3)
    return lambda i: None, lambda: x + torch.rand(3) + torch.randn(3), {}


def registered_generator() -> Checked:
    generator, x = torch.Generator(), torch.zeros(3)
    return lambda i: None, lambda: x + torch.rand(3, generator=generator), {"owners": (generator,)}


def seeded_in_prepare() -> Checked:
    x = torch.zeros(3)
    return lambda i: torch.manual_seed(i), lambda: x + torch.rand(3), {}


def views_of_views() -> Checked:
    x = torch.zeros(4, 6)

    def step() -> tuple[torch.Tensor, ...]:
        view = x.t()[1:5].unfold(0, 2, 2).transpose(0, 1)[..., 1]
        return view, view.reshape(-1), x[::2, 1:].mul(2)

    return lambda i: x.normal_(), step, {}


def output_is_an_input() -> Checked:
    x, y = torch.zeros(3), torch.zeros(3)

    def step() -> dict[str, Any]:
        y.copy_(x * 2)
        return {"x": x, "y": (y, y[1:]), "n": 3, "none": None}

    return lambda i: x.fill_(i), step, {}


def bound_to_the_same_buffer() -> Checked:
    static = torch.zeros(3)
    state = SimpleNamespace(x=static)

    def prepare(i: int) -> None:
        static.fill_(i)
        state.x = static

    def step() -> torch.Tensor:
        state.x = static.view(3)
        return state.x * 2

    return prepare, step, {"owners": state}


def numpy_alias() -> Checked:
    host = np.zeros(3, np.float32)
    state = SimpleNamespace(x=torch.from_numpy(host))

    def prepare(i: int) -> None:
        host[:] = i

    return prepare, lambda: state.x * 2, {"owners": state}


def result_in_an_attribute() -> Checked:
    state, x = SimpleNamespace(out=None), torch.zeros(3)
    shown = []

    def prepare(i: int) -> None:
        if i > 1:
            assert state.out is not None
            shown.append(float(state.out.sum()))
            x.copy_(state.out)

    def step() -> torch.Tensor:
        state.out = x + 1
        return state.out

    return prepare, step, {"owners": state}


def outputs_cloned() -> Checked:
    state, x, kept = SimpleNamespace(out=None), torch.zeros(3), []  # type: ignore[var-annotated]

    def prepare(i: int) -> None:
        if i > 1:
            assert state.out is not None
            kept.append(state.out.clone())
            torch.stack(kept).sum()
        x.fill_(i)

    def step() -> torch.Tensor:
        state.out = x + 1
        return state.out

    return prepare, step, {"owners": state}


def a_few_results_in_a_ring() -> Checked:
    last, x = deque(maxlen=3), torch.zeros(3)  # type: ignore[var-annotated]

    def step() -> torch.Tensor:
        last.append(x * 2)
        return last[-1]

    return lambda i: x.fill_(i), step, {}


def bound_elsewhere_and_unused() -> Checked:
    static = torch.zeros(3)
    state = SimpleNamespace(x=static, fresh=static)

    def prepare(i: int) -> None:
        state.fresh = torch.full((3,), float(i))
        static.copy_(state.fresh)

    return prepare, lambda: state.x * 2, {"owners": state}


def fresh_batch_and_fixed_buffer() -> Checked:
    """Eager reads the batch, the graph reads the buffer, and both hold the same."""
    buffer = SimpleNamespace(x=torch.zeros(3))
    batch = SimpleNamespace(x=buffer.x)

    def prepare(i: int) -> None:
        if i > 0:
            batch.x = torch.full((3,), float(i))
            buffer.x.copy_(batch.x)

    return prepare, lambda: batch.x * 2, {"owners": (buffer, batch)}


@dataclass
class Deep:
    model: nn.Module
    parts: dict[str, Any] = field(default_factory=dict)


def nested_owners() -> Checked:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.ReLU()).train()
    x = torch.zeros(2, 3)
    deep = Deep(model, {"inputs": [SimpleNamespace(x=x)]})

    def step() -> torch.Tensor:
        with torch.no_grad():
            out: torch.Tensor = deep.model(deep.parts["inputs"][0].x)
            return out

    return lambda i: x.normal_(), step, {"owners": deep}


def made_at_the_first_call() -> Checked:
    state, x = SimpleNamespace(mask=None), torch.zeros(3)

    def step() -> torch.Tensor:
        if state.mask is None:
            state.mask = torch.ones(3)
        return x * state.mask

    return lambda i: x.fill_(i), step, {"owners": state}


def a_joined_stream() -> Checked:
    side, x = emulator.Stream(), torch.zeros(3)

    def step() -> torch.Tensor:
        side.wait_stream(emulator.current_stream())
        with emulator.stream(side):
            y = x * 2
        emulator.current_stream().wait_stream(side)
        return y + 1

    return lambda i: x.fill_(i), step, {}


def a_count_that_changes_nothing() -> Checked:
    state, x = SimpleNamespace(steps=0), torch.zeros(3)

    def prepare(i: int) -> None:
        state.steps += 1
        x.fill_(state.steps)

    def step() -> torch.Tensor:
        state.steps += 0
        return x.clamp(max=1000 + state.steps)

    return prepare, step, {"owners": state}


def inference_mode() -> Checked:
    with torch.inference_mode():
        model, x, cache = nn.Linear(4, 4), torch.zeros(2, 4), torch.zeros(5, 4)

    def step() -> torch.Tensor:
        with torch.inference_mode():
            cache[:2].copy_(model(x))
            return torch.softmax(cache, -1)

    def prepare(i: int) -> None:
        with torch.inference_mode():
            x.fill_(i)

    return prepare, step, {}


def training() -> Checked:
    weight, x = torch.ones(3, requires_grad=True), torch.zeros(3)

    def step() -> torch.Tensor:
        loss = (weight * x).sum()
        (grad,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight.sub_(grad, alpha=0.1)
        return loss.detach()

    return lambda i: x.fill_(i), step, {}


def a_method() -> Checked:
    class Runner:
        def __init__(self) -> None:
            self.x, self.calls = torch.zeros(3), 0

        def prepare(self, i: int) -> None:
            self.x.fill_(i)

        def step(self) -> torch.Tensor:
            self.calls += 1
            return self.x * 2

    runner = Runner()
    return runner.prepare, runner.step, {}


ODD = [
    ring_buffer,
    cache_written_in_part,
    state_in_place,
    default_generator,
    registered_generator,
    seeded_in_prepare,
    views_of_views,
    output_is_an_input,
    bound_to_the_same_buffer,
    numpy_alias,
    result_in_an_attribute,
    outputs_cloned,
    a_few_results_in_a_ring,
    bound_elsewhere_and_unused,
    fresh_batch_and_fixed_buffer,
    nested_owners,
    made_at_the_first_call,
    a_joined_stream,
    a_count_that_changes_nothing,
    inference_mode,
    training,
    a_method,
]


@pytest.mark.parametrize("make", ODD, ids=lambda make: make.__name__)
def test_nothing_is_found(make: Callable[[], Checked]) -> None:
    prepare, step, options = make()
    report = sanitize(prepare, step, rounds=4, **options)
    assert not report, str(report)


def test_the_order_of_calls_is_the_contract_s_and_what_eager_runs_do_is_taken_back() -> None:
    calls: list[Any] = []
    x, cache = torch.zeros(2), torch.zeros(2)

    def prepare(i: int) -> None:
        calls.append(i)
        x.fill_(i)

    def step() -> torch.Tensor:
        calls.append("step")
        return cache.add_(x)

    assert not sanitize(prepare, step)
    assert calls == [0, "step", "step", 1, 2, 3]
    assert cache.tolist() == [6, 6]  # a warm-up with 0, nothing from the capture, three replays
