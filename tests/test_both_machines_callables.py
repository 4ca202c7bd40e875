"""``make_graphed_callables`` on a GPU and on the emulator alike: graphed pieces in an ordinary training loop.

Each test runs twice, once with ``torch.cuda`` where there is a GPU. PyTorch's own tests of CUDA graphs state the same.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from machine import Machine
from torch import Tensor, nn


class Section(nn.Module):
    """Takes and gives a dict, and leaves one of its arguments alone."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(dropout))

    def forward(self, given: dict[str, Tensor]) -> dict[str, Any]:
        hidden = self.net(given["x"])
        return {"hidden": hidden, "pair": (hidden * 2, hidden.detach().argmax(-1))}


class Gather(nn.Module):
    """Has no parameters."""

    def forward(self, x: Tensor) -> Tensor:
        index = torch.arange(x.size(0), device=x.device).view(-1, 1).repeat(1, x.size(1))
        return torch.gather(x, 0, index)


def example(machine: Machine, *shape: int, grad: bool = False) -> Tensor:
    return torch.randn(shape, device=machine.device, requires_grad=grad)


@pytest.mark.parametrize("amp", [False, True], ids=["float32", "autocast"])
def test_modules_and_functions_train_as_they_do_ungraphed(machine: Machine, amp: bool) -> None:
    torch.manual_seed(5)
    sections: list[Any] = [Section(0.2), Gather(), nn.Linear(8, 4)]
    sections = [section.to(machine.device) for section in sections]
    controls = deepcopy(sections)
    autocast = torch.autocast(machine.device, dtype=torch.bfloat16, enabled=amp, cache_enabled=False)
    unused = example(machine, 5, 3, grad=True)
    with autocast:
        *graphed, loss_function = machine.api.make_graphed_callables(
            (*sections, F.mse_loss),
            (
                ({"x": example(machine, 5, 6), "unused": unused},),
                (example(machine, 5, 8, grad=True),),
                (example(machine, 5, 8, grad=True),),
                (example(machine, 5, 4, grad=True), example(machine, 5, 4)),
            ),
            allow_unused_input=True,
        )
    assert [type(section) for section in graphed] == [type(section) for section in controls]
    data = [(example(machine, 5, 6), example(machine, 5, 4)) for _ in range(5)]
    losses = []
    for modules, criterion in ((graphed, loss_function), (controls, F.mse_loss)):
        optimizer = torch.optim.SGD([p for module in modules for p in module.parameters()], lr=0.1)
        torch.manual_seed(6)
        for x, y in data:
            optimizer.zero_grad(set_to_none=True)
            with autocast:
                made = modules[0]({"x": x, "unused": unused})
                prediction = modules[2](modules[1](made["hidden"] + made["pair"][0]))
                loss = criterion(prediction.float(), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    for section, control in zip(graphed, controls, strict=True):
        machine.assert_same(list(section.parameters()), list(control.parameters()))
    assert losses[:5] == pytest.approx(losses[5:])
    for module in (*graphed, *controls):  # they were graphed for training: what evaluates runs the original
        module.eval()
    x = example(machine, 7, 6)
    machine.assert_same(graphed[0]({"x": x})["hidden"], controls[0]({"x": x})["hidden"])


def test_without_gradients_there_is_a_forward_graph_and_no_other(machine: Machine) -> None:
    with torch.no_grad():
        module = machine.api.make_graphed_callables(Gather().to(machine.device), (example(machine, 4, 3),))
        x = example(machine, 4, 3)
        assert torch.equal(module(x), x)
    function = machine.api.make_graphed_callables(lambda a, b: {"sum": a + b}, (x.clone(), x.clone()))
    for _ in range(2):
        a, b = example(machine, 4, 3), example(machine, 4, 3)
        found = function(a, b)
        assert torch.equal(found["sum"], a + b)
        assert not found["sum"].requires_grad


def test_modules_may_share_a_pool_and_keep_their_own_gradients(machine: Machine) -> None:
    torch.manual_seed(3)
    pool = machine.api.graph_pool_handle()
    layers = [nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8)).to(machine.device) for _ in range(3)]
    graphed = [
        machine.api.make_graphed_callables(deepcopy(layer), (example(machine, 4, 6),), pool=pool) for layer in layers
    ]
    for layer, twin in zip(layers, graphed, strict=True):
        x = example(machine, 4, 6)
        expected, found = layer(x), twin(x)
        machine.assert_same(found, expected)
        expected.norm().backward()
        found.norm().backward()
        machine.assert_same([p.grad for p in twin.parameters()], [p.grad for p in layer.parameters()])


def test_arguments_get_their_gradients_and_are_copied_where_they_are_new(machine: Machine) -> None:
    sample = example(machine, 3, 2, grad=True)
    function = machine.api.make_graphed_callables(lambda x: (x * x).sum(), (sample,))
    for x in (sample, example(machine, 3, 2, grad=True)):
        x.grad = None
        function(x).backward()
        machine.assert_same(x.grad, 2 * x.detach())


def test_an_unused_argument_is_an_error_unless_it_is_allowed(machine: Machine) -> None:
    arguments = example(machine, 2, grad=True), example(machine, 2, grad=True)
    with pytest.raises(RuntimeError, match="allow_unused=True"):
        machine.api.make_graphed_callables(lambda x, y: x * 2, arguments)
    function = machine.api.make_graphed_callables(lambda x, y: x * 2, arguments, allow_unused_input=True)
    x, y = example(machine, 2, grad=True), example(machine, 2, grad=True)
    function(x, y).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert y.grad is None


def test_hooks_come_after_and_not_before(machine: Machine) -> None:
    module = nn.Linear(2, 2).to(machine.device)
    handle = module.register_forward_hook(lambda *_: None)
    with pytest.raises(AssertionError, match="must not have hooks registered"):
        machine.api.make_graphed_callables(module, (example(machine, 2, 2),))
    handle.remove()
    module = machine.api.make_graphed_callables(module, (example(machine, 2, 2),))
    called = []
    module.register_forward_hook(lambda *_: called.append(True))
    module(example(machine, 2, 2))
    assert called == [True]


def test_what_cannot_be_graphed_is_said(machine: Machine) -> None:
    make = machine.api.make_graphed_callables
    module = nn.Linear(2, 2).to(machine.device)
    with pytest.raises(AssertionError, match="must contain only Tensors"):
        make(lambda x, n: x * n, (example(machine, 2), 3))
    module.register_buffer("table", torch.zeros(2, device=machine.device, requires_grad=True))
    with pytest.raises(AssertionError, match="only parameters may be trainable"):
        make(module, (example(machine, 2, 2),))
    with (
        torch.autocast(machine.device, dtype=torch.bfloat16),
        pytest.raises(RuntimeError, match="does not support the autocast caching"),
    ):
        make(lambda x: x * 2, (example(machine, 2),))
    with pytest.raises(RuntimeError, match="capturing"):
        make(lambda x: x * x.sum().item(), (example(machine, 2),))
    function = make(lambda x: x * 2, (example(machine, 2),))
    x = example(machine, 2)
    assert torch.equal(function(x), x * 2)
