"""A replay's calls write where their kernels write and nowhere else: the memory behind a result is another's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from test_operations import STEPS, Step
from torch import Tensor

from onelaunch import emulator
from onelaunch.tape import Tape
from onelaunch.tape.lowering import lower
from onelaunch.tape.replay import Binder, plain_modes, python_call

WATCHED = 1 << 20  # bytes of each segment: more than these steps use

Loss = Callable[..., Tensor]
LOSSES: list[Loss] = [
    F.mse_loss,
    F.l1_loss,
    F.smooth_l1_loss,
    F.huber_loss,
    F.soft_margin_loss,
    F.binary_cross_entropy_with_logits,
    F.poisson_nll_loss,
    lambda a, b, reduction: F.binary_cross_entropy(a.sigmoid(), b.sigmoid(), reduction=reduction),
    lambda a, b, reduction: F.kl_div(a.log_softmax(-1), b.softmax(-1), reduction=reduction),
    lambda a, b, reduction: F.cross_entropy(a, b.sigmoid(), reduction=reduction),
    lambda a, b, reduction: F.nll_loss(a.log_softmax(-1), b.argmax(-1), reduction=reduction),
    lambda a, b, reduction: F.multi_margin_loss(a, b.argmax(-1), reduction=reduction),
    lambda a, b, reduction: F.multilabel_margin_loss(a, b.argsort(-1), reduction=reduction),
]


def assert_only_written_where_recorded(tape: Tape) -> None:
    bind = Binder(tape)
    for kernel in tape.kernels:
        call = python_call(lower(kernel), bind)
        before = [segment.memory[:WATCHED].clone() for segment in tape.pool.segments]  # type: ignore[index]
        with plain_modes():
            call()
        for segment, memory in zip(tape.pool.segments, before, strict=True):
            assert segment.memory is not None
            changed = segment.memory[: len(memory)] != memory
            for ref in kernel.writes:
                start = tape.buffers[ref.buffer].address - segment.address + ref.span[0]
                if 0 <= start < segment.nbytes:
                    changed[start : start + ref.span[1] - ref.span[0]] = False
            assert not changed.any(), kernel.name


def tape_of(step: Callable[[], Any]) -> tuple[emulator.CUDAGraph, Tape, Any]:
    graph = emulator.CUDAGraph(keep_graph=True)
    with emulator.graph(graph):
        out = step()
    assert graph.tape is not None
    return graph, graph.tape, out


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_the_operations_of_steps_write_to_their_own_memory_alone(step: Step) -> None:
    x, y, state = (torch.randn(4, 6) for _ in range(3))
    with torch.no_grad():
        _, tape, _ = tape_of(lambda: step(x, y, state))
    assert_only_written_where_recorded(tape)


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: getattr(loss, "__name__", "loss"))
def test_losses_and_their_gradients_write_to_their_own_memory_alone(loss: Loss, reduction: str) -> None:
    """Several of PyTorch's ``out`` variants make the result as large as the input first, then take the mean."""
    a, b = torch.randn(40, 6, requires_grad=True), torch.randn(40, 6)

    def step() -> tuple[Tensor, Tensor]:
        value = loss(a, b, reduction=reduction)
        (grad,) = torch.autograd.grad(value.sum(), a)
        return value.detach(), grad

    graph, tape, out = tape_of(step)
    with torch.no_grad():
        a.copy_(torch.randn(40, 6))
    assert_only_written_where_recorded(tape)
    graph.replay()
    assert all(torch.equal(found, expected) for found, expected in zip(out, step(), strict=True))


@pytest.mark.parametrize("executor", ["python", "script", "native"])
def test_zeros_that_autograd_keeps_without_memory_get_some(executor: str, play_with: Callable[[str], None]) -> None:
    play_with(executor)
    x = torch.randn(5, requires_grad=True)
    graph, _, (flat, sloped) = tape_of(
        lambda: [torch.autograd.grad(function(x).sum(), x)[0] for function in (torch.sgn, lambda x: x.sgn() + x * x)]
    )
    graph.replay()
    assert flat.tolist() == [0] * 5
    assert torch.equal(sloped, 2 * x.detach())
