"""Graphs after one another, in pools of their own and in one, on a GPU and on the emulator alike.

Each test runs twice, once with ``torch.cuda`` where there is a GPU. PyTorch's own tests of CUDA graphs state the same.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from machine import Machine
from torch import Tensor


@dataclass
class Sharing:
    """Whether the graphs of a test share a pool, and how the later ones are told of it."""

    how: str
    handle: Any

    def options(self, first: Any = None) -> dict[str, Any]:
        """Arguments of a capture. first: the graph that was captured first, None for that one itself."""
        if self.how == "graph_pool_handle()":
            return {"pool": self.handle}
        return {"pool": first.pool()} if self.how == "pool()" and first is not None else {}


@pytest.fixture(params=["none", "pool()", "graph_pool_handle()"])
def sharing(request: pytest.FixtureRequest, machine: Machine) -> Sharing:
    return Sharing(request.param, machine.api.graph_pool_handle())


def with_temporaries(t: Tensor, number: float) -> Tensor:
    return (t.clone() + number) + (t.clone() + number)


def test_one_graph_goes_on_where_the_other_ended_with_eager_work_between(machine: Machine, sharing: Sharing) -> None:
    a = machine.tensor(*[1.0] * 1000)

    def begin() -> Tensor:
        b = a.clone()
        for _ in range(5):
            b = with_temporaries(b, 1)
        return b

    first, b = machine.capture(begin, **sharing.options())

    def go_on() -> Tensor:
        c = b
        for _ in range(5):
            c = with_temporaries(c, 1)
        return c

    second, c = machine.capture(go_on, **sharing.options(first))
    for _ in range(2):
        eager = a.clone()
        for run in (first.replay, second.replay, lambda: None):
            eager = with_temporaries(with_temporaries(eager, 3), 3)
            run()
        expected, expected_eager = 1.0, 1.0
        for _ in range(10):
            expected = 2 * (expected + 1)
        for _ in range(6):
            expected_eager = 2 * (expected_eager + 3)
        assert c.unique().tolist() == [expected]
        assert eager.unique().tolist() == [expected_eager]


def test_graphs_of_one_pool_are_right_in_the_order_of_their_captures_and_in_no_other(
    machine: Machine, sharing: Sharing
) -> None:
    a = machine.tensor(*[1.0] * 1000)
    first, made = machine.capture(lambda: [a + 1, a + 2], **sharing.options())
    options = sharing.options(first)

    def take_and_drop() -> Tensor:
        out = made[0] + 3
        del made[0]
        return out

    second, e = machine.capture(take_and_drop, **options)
    third, f = machine.capture(lambda: made[0] + 4, **options)  # where the dropped tensor was
    for graph in (first, second, third):
        graph.replay()
    assert (e.unique().tolist(), f.unique().tolist()) == ([5], [7])
    for graph in (first, third, second):
        graph.replay()
    assert f.unique().tolist() == [7]
    assert e.unique().tolist() == ([5] if sharing.how == "none" else [7 + 3])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=lambda order: "".join(map(str, order)))
def test_graphs_may_go_in_any_order_and_what_they_made_stays(
    machine: Machine, sharing: Sharing, order: tuple[int, ...]
) -> None:
    a = machine.tensor(1.0, 2.0)
    graphs: dict[int, Any] = {}
    outputs: dict[int, Tensor] = {}
    for number in range(3):
        options = sharing.options(graphs.get(0))
        graphs[number], outputs[number] = machine.capture(lambda number=number: a.clone() * (number + 1), **options)
    for place, gone in enumerate(order):
        a.fill_(place + 1)
        for graph in graphs.values():
            graph.replay()
        del graphs[gone]
        a.fill_(100)
        for graph in graphs.values():  # those that are left do not reach what the other one made
            graph.replay()
        assert outputs[gone].tolist() == [(place + 1) * (gone + 1)] * 2
        assert all(outputs[left].tolist() == [100 * (left + 1)] * 2 for left in graphs)


def test_a_pool_serves_further_captures_after_its_first_graph_is_gone(machine: Machine) -> None:
    a = machine.tensor(1.0, 2.0)
    first, y = machine.capture(lambda: a + 1)
    second, z = machine.capture(lambda: a + 2, pool=first.pool())
    first.replay()
    del first
    third, w = machine.capture(lambda: a + 3, pool=second.pool())
    for graph in (second, third):
        graph.replay()
    assert (y.tolist(), z.tolist(), w.tolist()) == ([2, 3], [3, 4], [4, 5])


def test_a_graph_records_again_after_reset_on_what_it_made_before(machine: Machine) -> None:
    a = machine.tensor(*[1.0] * 100)
    graph, b = machine.capture(lambda: a + 1 + 1)
    graph.replay()
    assert b.unique().tolist() == [3]
    graph.reset()
    with machine.api.graph(graph):
        b.fill_(2.0)
        c = b * 10
    graph.replay()
    assert (b.unique().tolist(), c.unique().tolist()) == ([2], [20])


def test_a_refused_capture_leaves_the_pool_and_its_graphs_alone(machine: Machine) -> None:
    a = machine.tensor(1.0, 2.0)
    first, y = machine.capture(lambda: a + 1)
    with pytest.raises(RuntimeError):
        machine.capture(lambda: (a * 2).sum().item(), pool=first.pool())
    second, z = machine.capture(lambda: a + 2, pool=first.pool())
    for graph in (first, second):
        graph.replay()
    assert (y.tolist(), z.tolist()) == ([2, 3], [3, 4])


def test_a_graph_reads_what_another_made_before_either_was_replayed(machine: Machine) -> None:
    table = machine.tensor(10.0, 20.0, 30.0)
    numbers = machine.tensor(0, 1)
    first, index = machine.capture(lambda: numbers + 1)
    second, rows = machine.capture(lambda: table[index])
    first.replay()
    second.replay()
    assert rows.tolist() == [20, 30]
    numbers.zero_()
    first.replay()
    second.replay()
    assert rows.tolist() == [20, 20]


def test_too_much_memory_is_an_error_like_any_other(machine: Machine) -> None:
    with pytest.raises(RuntimeError, match="memory"):
        machine.capture(lambda: torch.zeros(2**44, device=machine.device))
    a = machine.tensor(1.0)
    graph, y = machine.capture(lambda: a + 1)
    graph.replay()
    assert y.tolist() == [2]
