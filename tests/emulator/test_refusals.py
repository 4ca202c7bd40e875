"""Each rule is refused with CUDA's words, tensor, line, reason and remedy; afterwards everything works again."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from onelaunch import emulator as cuda
from onelaunch.tape import RULES, CaptureError


def line_here() -> int:
    """The line of the caller."""
    return sys._getframe(1).f_lineno


@dataclass
class Workshop:
    """What a step may use. line: where the refused call stands; set right before it."""

    x: Tensor = field(default_factory=lambda: torch.tensor([1.0, -1.0]))
    outside: cuda.Event = field(default_factory=lambda: cuda.Stream().record_event())
    line: int = 0
    earlier: cuda.CUDAGraph = field(default_factory=cuda.CUDAGraph)

    def __post_init__(self) -> None:
        with cuda.graph(self.earlier):
            self.x * 2

    def host_sync(self) -> Any:
        total = self.x.sum()
        self.line = line_here() + 1
        return total.item()

    def host_copy(self) -> Any:
        doubled = self.x * 2
        self.line = line_here() + 1
        return doubled.cpu()

    def host_data(self) -> Any:
        self.line = line_here() + 1
        return self.x + torch.tensor([1.0, 2.0])

    def host_numpy(self) -> Any:
        doubled = self.x * 2
        self.line = line_here() + 1
        return doubled.numpy()

    def dynamic_shape(self) -> Any:
        doubled = self.x * 2
        self.line = line_here() + 1
        return doubled.nonzero()

    def library_sync(self) -> Any:
        doubled = self.x * 2
        self.line = line_here() + 1
        return torch.histc(doubled, 4)

    def unregistered_rng(self) -> Any:
        generator = torch.Generator()
        self.line = line_here() + 1
        return torch.rand(2, generator=generator)

    def reseeded_rng(self) -> Any:
        torch.manual_seed(torch.initial_seed() + 1)
        self.line = line_here() + 1
        return torch.rand(2)

    def uncapturable_optimizer(self) -> Any:
        weight = nn.Parameter(self.x.clone())
        weight.grad = torch.ones_like(weight)
        optimizer = torch.optim.Adam([weight])
        self.line = line_here() + 1
        optimizer.step()

    def unjoined_stream(self) -> Any:
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            return self.x * 2

    def synchronize(self) -> Any:
        self.line = line_here() + 1
        cuda.synchronize()

    def graph_destroyed(self) -> Any:
        self.line = line_here() + 1
        self.earlier.reset()

    def isolation(self) -> Any:
        self.line = line_here() + 1
        cuda.current_stream().wait_event(self.outside)

    def nested_capture(self) -> Any:
        self.line = line_here() + 1
        with cuda.graph(cuda.CUDAGraph()):
            pass

    def invalidated(self) -> Any:
        doubled = self.x * 2
        with pytest.raises(CaptureError):
            doubled.sum().item()
        self.line = line_here() + 1
        return doubled + 1

    def not_emulated(self) -> Any:
        self.line = line_here() + 1
        cuda.Event(external=True).record()


NAMED = {"host-sync": "total", "host-copy": "doubled", "host-numpy": "doubled", "dynamic-shape": "doubled"}


@pytest.fixture
def workshop() -> Workshop:
    return Workshop()


def step_of(workshop: Workshop, rule: str) -> Callable[[], Any]:
    step: Callable[[], Any] = getattr(workshop, rule.replace("-", "_"))
    return step


@pytest.mark.parametrize("rule", RULES)
def test_a_refusal_names_rule_tensor_line_reason_and_remedy(rule: str, workshop: Workshop) -> None:
    with pytest.raises(CaptureError) as caught, cuda.graph(cuda.CUDAGraph()):
        step_of(workshop, rule)()
    error, entry = caught.value, RULES[rule]
    assert error.rule == rule
    assert (error.why, error.fix) == (entry.why, entry.fix)
    text = str(error)
    assert entry.why in text
    assert entry.fix in text
    assert error.name == NAMED.get(rule, error.name)
    if rule in NAMED:
        assert f"'{NAMED[rule]}' (float32[" in text
    assert error.where.file == __file__
    if workshop.line:
        assert error.where.line == workshop.line
        assert f"{Path(__file__).name}:{workshop.line}" in text
    if entry.cuda_error is None:
        assert "On a GPU" not in text
    else:
        assert error.cuda_error == entry.cuda_error.replace("...", "Adam")
        assert text.endswith(f"On a GPU the error reads: {error.cuda_error}")


def test_the_end_of_a_graph_that_nobody_holds_ends_the_capture_of_another(workshop: Workshop) -> None:
    held = [workshop.earlier]
    del workshop.earlier

    def step() -> Tensor:
        held.clear()
        return workshop.x + 1

    with pytest.raises(CaptureError, match="refused earlier in this capture"), cuda.graph(cuda.CUDAGraph()):
        step()


def test_a_relaxed_capture_lets_other_graphs_end(workshop: Workshop) -> None:
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, capture_error_mode="relaxed"):
        workshop.earlier.reset()
        out = workshop.x + 1
    graph.replay()
    assert out.tolist() == [2.0, 0.0]


@pytest.mark.parametrize("rule", RULES)
def test_after_a_refusal_everything_is_as_it_was_and_works(rule: str, workshop: Workshop) -> None:
    """Inside other contexts, on a side stream, in a pool that another graph is in, with random numbers drawn."""
    x, shared = workshop.x, torch.zeros(2)
    earlier = cuda.CUDAGraph()
    with cuda.graph(earlier):
        kept = x + 10
    pool = earlier.pool()
    state, before = torch.get_rng_state(), (x.clone(), pool.memory.used_bytes)
    own = cuda.Stream()
    step = step_of(workshop, rule)

    def whole() -> Any:
        x.add_(torch.rand(2))
        shared.add_(1)
        with torch.enable_grad():
            return [x * 3, step()]

    outer = cuda.Stream()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16), cuda.stream(outer):
        with pytest.raises(CaptureError) as caught, cuda.graph(cuda.CUDAGraph(), pool=pool, stream=own):
            whole()
        assert caught.value.rule == rule
        assert cuda.current_stream() == outer
        assert torch.is_autocast_enabled("cpu")
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    assert cuda.current_stream() == cuda.default_stream()
    assert not cuda.is_current_stream_capturing()
    assert not own.is_capturing()
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(x, before[0])
    assert shared.tolist() == [0, 0]
    del caught
    gc.collect()
    pool.memory.collect()
    assert pool.memory.used_bytes == before[1]

    again = cuda.CUDAGraph()
    again.register_generator_state(torch.default_generator)
    with cuda.graph(again, pool=pool, stream=own):
        out = x * 2 + torch.rand(2)
    cuda.synchronize()
    for graph in (earlier, again):
        graph.replay()
    torch.set_rng_state(state)
    assert torch.equal(out, x * 2 + torch.rand(2))
    assert torch.equal(kept, x + 10)


def test_a_refusal_in_the_backward_pass_is_one_too() -> None:
    class Asks(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
            return grad * float(grad.sum())

    weight = torch.ones(3, requires_grad=True)
    with pytest.raises(CaptureError) as caught, cuda.graph(cuda.CUDAGraph()):
        Asks.apply(weight).sum().backward()
    assert caught.value.rule == "host-sync"
    assert "backward" in caught.value.where.function
    assert weight.grad is None
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        (weight * 3).sum().backward()
    graph.replay()
    assert weight.grad.tolist() == [3, 3, 3]


ONE_NUMBER: dict[str, tuple[bool, Callable[[Tensor], Any]]] = {
    # PyTorch copies a number to one element from host memory and fills everything larger on the device.
    "an element": (False, lambda x: x.__setitem__((0, 0), 2.0)),
    "a number of a 0-dim tensor": (False, lambda x: x.sum().__setitem__(..., 2.0)),
    "copy_": (False, lambda x: x.copy_(torch.tensor(2.0))),
    "to the device": (False, lambda x: x + torch.tensor(2.0).to(x.device)),
    "to another tensor's device": (False, lambda x: x + torch.tensor(2.0).to(x)),
    "a row": (True, lambda x: x.__setitem__(0, 2.0)),
    "a slice of one element": (True, lambda x: x.__setitem__((slice(0, 1), slice(0, 1)), 2.0)),
    "fill_": (True, lambda x: x[0, 0].fill_(2.0)),
    "an operand": (True, lambda x: x.mul_(torch.tensor(2.0))),
    "to another type": (True, lambda x: x.mul_(torch.tensor(2.0).to(torch.float64))),
    "a result of the host": (False, lambda x: x.copy_(torch.tensor(2.0) * 3)),
    "a result of the host as an operand": (True, lambda x: x.mul_((torch.tensor(2.0) * 3).to(torch.float64).add_(1))),
    "a result of the host read there": (True, lambda x: x.mul_((torch.tensor(2.0) + 1).item())),
    "where": (True, lambda x: x.copy_(torch.where(x > 0, x, torch.tensor(2.0)))),
}


@pytest.mark.parametrize("name", ONE_NUMBER)
def test_a_number_of_the_host_may_be_an_operand_and_may_not_be_copied(name: str) -> None:
    allowed, step = ONE_NUMBER[name]
    x = torch.full((2, 2), -1.0)
    graph = cuda.CUDAGraph()
    if not allowed:
        with pytest.raises(CaptureError) as caught, cuda.graph(graph):
            step(x)
        assert caught.value.rule == "host-data"
        assert torch.equal(x, torch.full((2, 2), -1.0))
        return
    with cuda.graph(graph):
        step(x)
    expected = torch.full((2, 2), -3.0)
    x.copy_(expected)
    graph.replay()
    step(expected)
    assert torch.equal(x, expected)
