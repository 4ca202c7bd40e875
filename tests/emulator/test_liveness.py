"""``check_input_liveness``: a replay whose inputs are gone is an error that says which, where it was used and freed."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from onelaunch import emulator as cuda


def checked(step: Any, **options: Any) -> tuple[cuda.CUDAGraph, Any]:
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, check_input_liveness=True, **options):
        out = step()
    return graph, out


def test_while_everything_lives_nothing_is_said_and_replays_are_right() -> None:
    x = torch.ones(3)
    graph, y = checked(lambda: (x * 2).relu() + 1)
    for value in (1.0, 4.0):
        x.fill_(value)
        graph.replay()
        assert y.tolist() == [2 * value + 1] * 3


def test_the_error_names_the_tensor_its_use_and_its_end() -> None:
    made = {"x": torch.ones(3)}

    def step() -> Tensor:
        positions = made["x"]
        return positions * 2

    graph, _ = checked(step)
    graph.replay()

    def forget() -> None:
        made.clear()

    forget()
    with pytest.raises(RuntimeError, match=r"detected 1 dead tensor") as caught:
        graph.replay()
    text = str(caught.value)
    used, freed = text.index("return positions * 2"), text.index("made.clear()")
    assert "'positions' (float32[3])" in text
    assert text.index("First used") < used < text.index("Deletion Traceback") < freed < text.index("Replay Traceback")


def test_a_view_keeps_its_memory_alive_and_a_refilled_name_does_not() -> None:
    held = [torch.ones(4)]
    graph, y = checked(lambda: held[0][1:3] * 2)
    held[0] = held[0][:1]
    graph.replay()
    assert y.tolist() == [2, 2]
    held[0] = torch.ones(4)  # perhaps at the same address
    with pytest.raises(RuntimeError, match="dead tensor"):
        graph.replay()


def test_what_the_step_made_may_go_and_so_may_outputs() -> None:
    x = torch.ones(3)
    graph, out = checked(lambda: (x * 2, x * 3))
    del out
    gc.collect()
    graph.replay()


def test_weights_and_caches_count_and_many_dead_ones_are_counted() -> None:
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)])
    held = {"model": model, "cache": torch.zeros(2, 4)}
    del model
    x = torch.ones(2, 4)
    with torch.no_grad():
        graph = checked(lambda: held["cache"].copy_(held["model"](x)))[0]  # type: ignore[operator]
    graph.replay()
    held.clear()
    gc.collect()
    with pytest.raises(RuntimeError, match=r"detected 9 dead tensor[^$]*and 4 more"):
        graph.replay()


def test_reset_forgets_and_a_failed_capture_leaves_nothing_behind() -> None:
    held = [torch.ones(3)]
    graph, _ = checked(lambda: held[0] * 2)
    graph.reset()
    with pytest.raises(RuntimeError, match="capturing"), cuda.graph(graph, check_input_liveness=True):
        held[0].sum().item()
    with cuda.graph(graph):
        y = held[0] * 3
    held.clear()
    graph.replay()  # not watched this time, and here the memory is still there
    assert y.tolist() == [3, 3, 3]


def test_outputs_of_another_graph_are_not_inputs_that_can_die() -> None:
    x = torch.ones(3)
    first, made = checked(lambda: [x + 1])
    second, z = checked(lambda: made[0] * 2, pool=first.pool())
    first.replay()
    second.replay()
    assert z.tolist() == [4, 4, 4]
    made.clear()
    second.replay()
