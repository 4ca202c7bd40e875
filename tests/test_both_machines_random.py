"""Random numbers of a graph: each replay goes on where the generator stands, on a GPU and on the emulator alike.

Each test runs twice, once with ``torch.cuda`` where there is a GPU. PyTorch's own tests of CUDA graphs state the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from machine import Machine
from torch import Tensor

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout": lambda t: F.dropout(t, 0.1),
    "rrelu": lambda t: F.rrelu(t, training=True),
    "alpha_dropout": lambda t: F.alpha_dropout(t, 0.1, training=True),
    "feature_dropout": lambda t: F.dropout1d(t, 0.5),
}
DISTRIBUTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "bernoulli": lambda p: torch.bernoulli(p),
    "normal": lambda p: torch.normal(p + 1, 1.0),
    "poisson": lambda p: torch.poisson(p),
    "rand": lambda p: torch.rand(500, device=p.device),
    "randint": lambda p: torch.randint(0, 3, (500,), device=p.device),
    "randn": lambda p: torch.randn(500, device=p.device),
    "rand_like": lambda p: torch.rand_like(p),
    "multinomial": lambda p: torch.multinomial(p, 3),
    "bernoulli_": lambda p: p.clone().bernoulli_(p),
    "cauchy_": lambda p: p.clone().cauchy_(),
    "exponential_": lambda p: p.clone().exponential_(),
    "geometric_": lambda p: p.clone().geometric_(0.3),
    "log_normal_": lambda p: p.clone().log_normal_(),
    "normal_": lambda p: p.clone().normal_(),
    "random_": lambda p: p.clone().random_(),
    "uniform_": lambda p: p.clone().uniform_(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_replays_and_eager_calls_take_turns_on_one_generator(machine: Machine, name: str) -> None:
    function = FUNCTIONS[name]
    start = torch.randn(10, 50, device=machine.device)
    fixed = start.clone()
    graph, out = machine.record(lambda: function(function(fixed)))
    for seed in (5, 6):
        torch.manual_seed(seed)
        expected = start
        for _ in range(6):
            expected = function(expected)
        torch.manual_seed(seed)
        fixed.copy_(start)
        graph.replay()
        fixed.copy_(function(function(out)))
        graph.replay()
        machine.assert_same(out, expected)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_replay_draws_what_two_eager_calls_draw_after_the_same_others(machine: Machine, name: str) -> None:
    draw = DISTRIBUTIONS[name]
    p = torch.rand(500, device=machine.device, generator=machine.generator(0)) * 0.9 + 0.05
    before = torch.get_rng_state()
    graph, drawn = machine.capture(lambda: (draw(p), draw(p)))
    assert torch.equal(torch.get_rng_state(), before)
    for seed in (6, 314):
        torch.manual_seed(seed)
        expected = [draw(p) for _ in range(3)][1:]
        assert all(not torch.equal(a, b) for a, b in zip(drawn, expected, strict=True))
        torch.manual_seed(seed)
        draw(p)
        graph.replay()
        machine.assert_same(list(drawn), expected)


def test_each_registered_generator_goes_its_own_way_and_can_be_set_back(machine: Machine) -> None:
    one, other = machine.generator(1), machine.generator(2)
    graph = machine.api.CUDAGraph()
    graph.register_generator_state(one)
    graph.register_generator_state(other)

    def draw(one: Any, other: Any, default: Any = None) -> list[Tensor]:
        sizes = ((4, one), (3, other), (4, one), (5, default))
        return [torch.rand(n, device=machine.device, generator=generator) for n, generator in sizes]

    with machine.api.graph(graph):
        drawn = draw(one, other)
    one.manual_seed(11)  # the seeds of the capture are not frozen
    other.manual_seed(12)
    torch.manual_seed(13)
    twins = machine.generator(11), machine.generator(12), machine.generator(13)
    for _ in range(3):
        state, expected = other.get_state(), draw(*twins)
        graph.replay()
        machine.assert_same(drawn, expected)
    other.set_state(state)
    graph.replay()
    machine.assert_same(drawn[1], expected[1])
    assert not torch.equal(drawn[0], expected[0])


def test_a_generator_that_was_not_registered_is_refused_and_serves_others_afterwards(machine: Machine) -> None:
    generator, twin = machine.generator(3), machine.generator(3)
    x = machine.tensor(1.0)
    with pytest.raises(RuntimeError, match="Attempt to increase offset for a CUDA generator not in capture mode"):
        machine.capture(lambda: torch.rand(2, device=x.device, generator=generator))
    assert torch.equal(generator.get_state(), twin.get_state())
    graph = machine.api.CUDAGraph()
    graph.register_generator_state(generator)
    with machine.api.graph(graph):
        out = torch.rand(2, device=x.device, generator=generator)
    graph.replay()
    machine.assert_same(out, torch.rand(2, device=x.device, generator=twin))


def test_a_step_may_seed_with_the_seed_that_is_there_and_with_no_other(machine: Machine) -> None:
    torch.manual_seed(7)
    machine.capture(lambda: [torch.manual_seed(7), torch.rand(2, device=machine.device)])
    with pytest.raises(RuntimeError, match="only if new seed is the same as the original seed"):
        machine.capture(lambda: [torch.manual_seed(8), torch.rand(2, device=machine.device)])
    torch.manual_seed(7)
    graph, out = machine.capture(lambda: torch.rand(2, device=machine.device))
    expected = torch.rand(2, device=machine.device)
    torch.manual_seed(7)
    graph.replay()
    machine.assert_same(out, expected)


def test_an_eval_mode_module_draws_nothing_and_a_training_one_at_each_replay(machine: Machine) -> None:
    x = torch.ones(4, 100, device=machine.device)
    module = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.ReLU())
    trained, noisy = machine.record(lambda: module(x))
    module.eval()
    tested, calm = machine.record(lambda: module(x))
    for graph in (trained, tested):
        graph.replay()
    first = noisy.clone()
    trained.replay()
    assert torch.equal(calm, x)
    assert not torch.equal(noisy, first)
