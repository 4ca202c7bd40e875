"""Which executor plays a tape: the named one or the fastest, and never another one in silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from onelaunch import emulator
from onelaunch.tape import FastestExecutor, ScriptExecutor, Tape, make_executor, native
from onelaunch.tape.executors import EXECUTORS, TRIES


def record(steps: int = 20) -> tuple[emulator.CUDAGraph, torch.Tensor, torch.Tensor]:
    x = torch.arange(6.0)
    graph = emulator.CUDAGraph()
    with emulator.graph(graph):
        y = x
        for _ in range(steps):
            y = y * 1.5 + 1
    return graph, x, y


def tape_of(graph: emulator.CUDAGraph) -> Tape:
    assert graph.tape is not None
    return graph.tape


def test_the_fastest_is_chosen_after_each_was_tried(native_loop: None) -> None:
    graph, x, y = record()
    player = make_executor(tape_of(graph), "auto")
    assert isinstance(player, FastestExecutor)
    for turn in range(len(EXECUTORS) * TRIES):
        assert player.name == "auto"
        x.fill_(turn)
        player.run()
        expected = x
        for _ in range(20):
            expected = expected * 1.5 + 1
        assert torch.equal(y, expected)
    assert set(player.seconds) == set(EXECUTORS)
    assert player.name == min(player.seconds, key=player.seconds.__getitem__)


def test_what_is_not_compiled_is_no_candidate_and_naming_it_says_how(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ONELAUNCH_CACHE", str(tmp_path))
    native.load.cache_clear()
    graph, _, _ = record()
    player = make_executor(tape_of(graph), "auto")
    while player.name == "auto":
        player.run()
    assert isinstance(player, FastestExecutor)
    assert set(player.seconds) == {"script", "python"}
    with pytest.raises(native.NativeBuildError, match="onelaunch compile"):
        make_executor(tape_of(graph), "native")


def test_the_environment_names_one_and_a_wrong_name_is_an_error(play_with: Callable[[str], None]) -> None:
    play_with("script")
    graph, _, _ = record()
    assert graph.executor == "script"
    play_with("fastest")
    with pytest.raises(ValueError, match="ONELAUNCH_EXECUTOR='fastest' is not an executor; there is auto, native"):
        record()


@pytest.mark.parametrize("executor", list(EXECUTORS))
def test_a_generator_is_the_same_one_and_advances(executor: str, play_with: Callable[[str], None]) -> None:
    play_with(executor)
    generator, twin = (torch.Generator().manual_seed(1) for _ in range(2))
    graph = emulator.CUDAGraph()
    graph.register_generator_state(generator)
    with emulator.graph(graph):
        noise = torch.rand(5, generator=generator)
    for _ in range(3):
        graph.replay()
        assert torch.equal(noise, torch.rand(5, generator=twin))
    assert torch.equal(generator.get_state(), twin.get_state())


def test_a_call_that_a_script_cannot_hold_is_made_from_python_and_counted() -> None:
    x = torch.zeros(5)
    graph = emulator.CUDAGraph()
    with emulator.graph(graph):
        y = (x + 1) * (x + 2).max()  # TorchScript takes max(x, out=y) for max(x, y)
    player = ScriptExecutor(tape_of(graph))
    assert player.python_calls == 1
    x.copy_(torch.arange(5))
    player.run()
    assert torch.equal(y, (x + 1) * 6)


def test_a_whole_decode_step_goes_into_one_script() -> None:
    from onelaunch import LLM

    with LLM("random:llama", device="cpu", cuda_graph_bs=[2], max_running_req=2, max_seq_len_override=64) as llm:
        graph = llm.engine.runner.graph_map[2]
        assert isinstance(graph, emulator.CUDAGraph)
        assert ScriptExecutor(tape_of(graph)).python_calls == 0


@pytest.mark.parametrize("executor", list(EXECUTORS))
def test_zero_and_minus_zero_stay_apart(executor: str, play_with: Callable[[str], None]) -> None:
    play_with(executor)
    x = torch.ones(3)
    graph = emulator.CUDAGraph()
    with emulator.graph(graph):
        y = torch.stack([x * 0.0, x * -0.0, x.clamp(max=-0.0), x.clamp(max=0.0)])
    graph.replay()
    assert torch.equal(torch.signbit(y[:, 0]), torch.tensor([False, True, True, False]))
