"""Training steps as graphs, and ``make_graphed_callables``, on a GPU and on the emulator alike.

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


def batches(machine: Machine, count: int, *shape: int) -> list[Tensor]:
    generator = machine.generator(0)
    return [torch.randn(shape, device=machine.device, generator=generator) for _ in range(count)]


def model_on(machine: Machine, dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(1)
    layers = nn.Linear(6, 8), nn.ReLU(), nn.Dropout(dropout), nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8))
    return nn.Sequential(*layers, nn.Linear(8, 4)).to(machine.device)


OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD, momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "SGD, fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "SGD, one by one": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False),
    "Adam, fused": lambda p: torch.optim.Adam(p, lr=0.1, fused=True, capturable=True),
    "AdamW, fused": lambda p: torch.optim.AdamW(p, lr=0.1, fused=True, capturable=True, amsgrad=True),
}


@pytest.mark.filterwarnings("ignore:This instance was constructed with capturable=True")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_whole_training_step_replays_as_it_runs(machine: Machine, name: str) -> None:
    model = model_on(machine)
    control = deepcopy(model)
    x, y = batches(machine, 2, 5, 6)[0], batches(machine, 2, 5, 4)[0]

    def train(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    optimizer, control_optimizer = (OPTIMIZERS[name](m.parameters()) for m in (model, control))
    machine.warm_up(lambda: train(model, optimizer, x, y), times=2)
    for _ in range(2):
        train(control, control_optimizer, x, y)
    optimizer.zero_grad(set_to_none=True)
    graph, loss = machine.capture(lambda: train(model, optimizer, x, y))
    places = [parameter.grad.data_ptr() for parameter in model.parameters()]
    machine.assert_same(list(model.parameters()), list(control.parameters()))  # the capture took no step
    for new_x, new_y in zip(batches(machine, 4, 5, 6), batches(machine, 4, 5, 4), strict=True):
        x.copy_(new_x)
        y.copy_(new_y)
        graph.replay()
        expected = train(control, control_optimizer, new_x, new_y)
        machine.assert_same(loss, expected)
        machine.assert_same(list(model.parameters()), list(control.parameters()))
        machine.assert_same([p.grad for p in model.parameters()], [p.grad for p in control.parameters()])
    assert [parameter.grad.data_ptr() for parameter in model.parameters()] == places


@pytest.mark.filterwarnings("ignore:This instance was constructed with capturable=True")
@pytest.mark.parametrize("cls", [torch.optim.Adam, torch.optim.RMSprop, torch.optim.NAdam, torch.optim.Adadelta])
def test_an_optimizer_that_counts_on_the_host_is_refused_in_torchs_words(machine: Machine, cls: Any) -> None:
    parameter = nn.Parameter(machine.tensor(1.0, 2.0))
    parameter.grad = machine.tensor(0.5, 0.5)
    optimizer = cls([parameter])
    optimizer.step()
    before = parameter.detach().clone()
    text = f"Attempting CUDA graph capture of step.. for an instance of {cls.__name__} but param_groups' capturable is"
    with pytest.raises(RuntimeError, match=text):
        machine.capture(optimizer.step)
    assert torch.equal(parameter.detach(), before)
    optimizer.step()
    assert not torch.equal(parameter.detach(), before)


@pytest.mark.filterwarnings("ignore:This instance was constructed with capturable=True")
def test_one_group_that_is_not_capturable_is_enough_to_refuse(machine: Machine) -> None:
    parameters = [nn.Parameter(machine.tensor(1.0)) for _ in range(2)]
    groups = [{"params": [p], "capturable": number == 0} for number, p in enumerate(parameters)]
    optimizer = torch.optim.Adam(groups, fused=True)
    for parameter in parameters:
        parameter.grad = machine.tensor(0.5)
    optimizer.step()
    with pytest.raises(RuntimeError, match="instance of Adam but param_groups' capturable is False"):
        machine.capture(optimizer.step)


def test_a_gradient_scaler_around_a_captured_forward_and_backward(machine: Machine) -> None:
    """Scaling is in the graph. What looks for infinities, skips a step and sets the scale stays with the host."""
    scaler = torch.amp.GradScaler(machine.device, init_scale=4.0, growth_interval=2)
    weight = torch.ones(100, device=machine.device, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    x = torch.ones_like(weight)

    def forward_and_backward() -> None:
        scaler.scale((weight * x).sum()).backward()

    machine.warm_up(forward_and_backward)
    optimizer.zero_grad(set_to_none=True)
    graph, _ = machine.capture(forward_and_backward)
    expected = torch.ones(100, device=machine.device)
    scales = []
    for value in (5.0, torch.inf, 5.0, 3.0, 2.0):
        x.fill_(value)
        graph.replay()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        if value != torch.inf:
            expected -= 0.1 * value
    assert scales == [4.0, 2.0, 2.0, 4.0, 4.0]  # half after an infinity, double after two steps without
    machine.assert_same(weight.detach(), expected)


def test_a_step_with_the_scaler_inside_is_captured_where_the_optimizer_is_fused(machine: Machine) -> None:
    weight = nn.Parameter(machine.tensor(1.0, 2.0))
    grad, scale, found_inf = machine.tensor(0.0, 0.0), machine.tensor(4.0), machine.tensor(0.0)
    weight.grad = torch.zeros_like(weight)
    optimizer: Any = torch.optim.SGD([weight], lr=0.1, fused=True)
    optimizer.grad_scale, optimizer.found_inf = scale, found_inf

    def step() -> None:
        weight.grad.copy_(grad)  # type: ignore[union-attr]  # it has one
        optimizer.step()

    machine.warm_up(step)
    graph, _ = machine.capture(step)
    grad.fill_(8.0)
    graph.replay()
    machine.assert_same(weight.detach(), machine.tensor(1.0 - 0.2, 2.0 - 0.2))
    found_inf.fill_(1.0)
    graph.replay()
    machine.assert_same(weight.detach(), machine.tensor(1.0 - 0.2, 2.0 - 0.2))


@pytest.mark.parametrize("cached", [False, True])
def test_the_cache_of_autocast_freezes_weights_that_were_cast_before_the_capture(
    machine: Machine, cached: bool
) -> None:
    """Which is why torch's own notes want ``cache_enabled=False`` around a capture."""
    layer = nn.Linear(4, 4, bias=False).to(machine.device)
    x = torch.randn(2, 4, device=machine.device)
    with torch.autocast(machine.device, dtype=torch.bfloat16, cache_enabled=cached):
        graph, out = machine.record(lambda: layer(x))
        with torch.no_grad():
            layer.weight.fill_(0.5)
        graph.replay()
        torch.clear_autocast_cache()
        expected = layer(x)
    assert out.dtype is torch.bfloat16
    assert torch.equal(out, expected) is not cached
