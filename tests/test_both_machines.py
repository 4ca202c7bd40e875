"""The same lines on a GPU and on the emulator: what a graph does there must be what the tape does here.

Each test runs twice, once with ``torch.cuda`` where there is a GPU: so the emulation is held against the thing itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from machine import Machine
from torch import Tensor

from onelaunch import LLM, SamplingParams
from onelaunch.tape import RULES


def test_a_capture_runs_nothing_and_each_replay_runs_once(machine: Machine) -> None:
    count = machine.tensor(0.0)
    graph, _ = machine.capture(lambda: count.add_(1))
    assert count.item() == 0
    for _ in range(3):
        graph.replay()
    assert count.item() == 3


def test_a_replay_reads_the_recorded_memory_and_no_other(machine: Machine) -> None:
    holder = {"x": machine.tensor(1.0, 2.0)}
    graph, y = machine.record(lambda: holder["x"] * 10)
    recorded = holder["x"]
    holder["x"] = machine.tensor(5.0, 6.0)
    graph.replay()
    assert y.tolist() == [10, 20]
    recorded.copy_(holder["x"])
    graph.replay()
    assert y.tolist() == [50, 60]


def test_numbers_and_branches_of_the_host_are_frozen(machine: Machine) -> None:
    settings = {"scale": 2.0, "negate": False}
    x = machine.tensor(1.0)

    def step() -> Tensor:
        y = x * settings["scale"]
        return -y if settings["negate"] else y

    graph, y = machine.record(step)
    settings.update(scale=3.0, negate=True)
    graph.replay()
    assert y.item() == 2


def test_a_kept_output_is_overwritten_by_the_next_replay(machine: Machine) -> None:
    x = machine.tensor(1.0)
    graph, y = machine.record(lambda: x + 1)
    graph.replay()
    kept, copied = y, y.clone()
    x.fill_(10)
    graph.replay()
    assert (kept.item(), copied.item()) == (11, 2)


def test_graphs_of_one_pool_use_the_memory_that_the_other_let_go(machine: Machine) -> None:
    x = machine.tensor(*range(64))
    first, y = machine.record(lambda: x + 1)
    place = y.data_ptr()
    first.replay()
    view = y.view(64)
    del y
    kept = view.data_ptr()
    assert kept == place
    del view
    second, z = machine.record(lambda: x * 2, pool=first.pool())
    assert z.data_ptr() == place
    second.replay()
    assert z.tolist() == [2 * n for n in range(64)]
    first.replay()
    assert z.tolist() == [n + 1 for n in range(64)]


def test_work_on_a_joined_stream_belongs_to_the_graph(machine: Machine) -> None:
    x = machine.tensor(3.0)
    side = machine.api.Stream()

    def step() -> Tensor:
        main = machine.api.current_stream()
        side.wait_stream(main)
        with machine.api.stream(side):
            y = x * 2
        z = x + 1
        main.wait_stream(side)
        return y + z

    graph, out = machine.record(step)
    x.fill_(4)
    graph.replay()
    assert out.item() == 13


def test_random_numbers_advance_and_a_seed_brings_them_back(machine: Machine) -> None:
    x = machine.tensor(*[0.0] * 8)
    graph, noise = machine.record(lambda: torch.rand_like(x))
    torch.manual_seed(5)
    graph.replay()
    first = noise.clone()
    graph.replay()
    assert not torch.equal(noise, first)
    torch.manual_seed(5)
    graph.replay()
    assert torch.equal(noise, first)


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_a_capture_may_be_begun_and_ended_by_hand(machine: Machine, mode: str) -> None:
    a, stream, graph = machine.tensor(*[1.0] * 1000), machine.api.Stream(), machine.api.CUDAGraph()
    stream.wait_stream(machine.api.current_stream())
    with machine.api.stream(stream):
        assert not machine.api.is_current_stream_capturing()
        graph.capture_begin(machine.api.graph_pool_handle(), capture_error_mode=mode)
        assert machine.api.is_current_stream_capturing()
        b = a
        for _ in range(10):
            b = b + 1
        graph.capture_end()
        assert not machine.api.is_current_stream_capturing()
    machine.api.current_stream().wait_stream(stream)
    graph.replay()
    assert b.sum().item() == 11000


def test_a_kept_graph_may_be_instantiated_again_and_again_and_recorded_anew(machine: Machine) -> None:
    graph = machine.api.CUDAGraph(keep_graph=True)
    for amount in (1, 2):
        x = machine.tensor(0.0)
        with machine.api.graph(graph):
            x += amount
        for times in (1, 2):
            graph.instantiate()
            graph.replay()
            assert x.item() == amount * times
        graph.replay()
        assert x.item() == amount * 3
        graph.reset()
    with machine.api.graph(graph):
        x += 1
    graph.replay()  # which instantiates it
    assert x.item() == 7


def test_only_a_kept_graph_is_instantiated_by_the_caller(machine: Machine) -> None:
    x = machine.tensor(0.0)
    graph, _ = machine.capture(lambda: x.add_(1))
    with pytest.raises(
        RuntimeError, match=r"instantiate\(\) is intended to be called by the user only when keep_graph"
    ):
        graph.instantiate()
    with pytest.raises(RuntimeError, match="unless CUDAGraph was initialized with keep_graph=true"):
        graph.raw_cuda_graph()
    graph.reset()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.pool()


def test_a_graph_may_be_replayed_from_another_thread(machine: Machine) -> None:
    x = machine.tensor(1.0)
    graph, y = machine.record(lambda: (x * 2).exp())
    x.fill_(0.0)

    def work() -> None:
        for _ in range(10):
            graph.replay()
        machine.api.synchronize()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert y.item() == 1


def test_a_dump_is_in_graphvizs_language(machine: Machine, tmp_path: Path) -> None:
    x, side = machine.tensor(1.0), machine.api.Stream()

    def step() -> Tensor:
        main = machine.api.current_stream()
        side.wait_stream(main)
        with machine.api.stream(side):
            y = x * 2
        main.wait_stream(side)
        return y + x

    graph = machine.api.CUDAGraph(keep_graph=True)
    with machine.api.graph(graph):
        step()
    graph.debug_dump(str(tmp_path / "graph.dot"))
    text = (tmp_path / "graph.dot").read_text()
    assert text.startswith("digraph")
    assert "->" in text


REFUSED: dict[str, tuple[str, Callable[[Tensor], Any]]] = {
    "item": ("host-sync", lambda x: x.sum().item()),
    "bool": ("host-sync", lambda x: bool(x[0] > 0)),
    "cpu": ("host-copy", lambda x: x.cpu()),
    "tolist": ("host-copy", lambda x: x.tolist()),
    "numpy": ("host-numpy", lambda x: x.numpy()),
    "nonzero": ("dynamic-shape", lambda x: x.nonzero()),
    "mask": ("dynamic-shape", lambda x: x[x > 1]),
    "number": ("host-data", lambda x: x.copy_(torch.tensor(2.0))),
    "host data": ("host-data", lambda x: torch.tensor([1.0, 2.0], device=x.device)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse_it_with_the_same_words_and_work_afterwards(machine: Machine, name: str) -> None:
    rule, operation = REFUSED[name]
    x = machine.tensor(1.0, 2.0, 3.0)
    with pytest.raises((RuntimeError, TypeError)) as caught:
        machine.capture(lambda: operation(x))
    text = RULES[rule].cuda_error
    assert text is not None
    # The sentence; what PyTorch adds around it differs from version to version.
    assert text.removeprefix("CUDA error: ").split(".")[0] in f"{caught.value} {caught.value.__context__}"
    assert x.tolist() == [1, 2, 3]
    graph, y = machine.record(lambda: x + 1)
    graph.replay()
    assert y.tolist() == [2, 3, 4]


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_the_engine_writes_the_same_text_with_graphs(machine: Machine, family: str) -> None:
    params = SamplingParams(max_tokens=10, ignore_eos=True)
    prompts = [[1, 2, 3], [4], [5, 6]]
    options: dict[str, Any] = {"device": machine.device, "dtype": torch.float32, "max_seq_len_override": 64}
    with LLM(f"random:{family}", attention_backend="gather", **options) as eager:
        expected = eager.generate(prompts, params)
    with LLM(f"random:{family}", cuda_graph_bs=[1, 2, 4], max_running_req=4, **options) as llm:
        assert llm.generate(prompts, params) == expected
        assert llm.engine.runner.stats.steps == {(3, 4): 9}
