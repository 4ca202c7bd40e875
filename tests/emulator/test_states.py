"""A graph's life: calls in the wrong order, captures that fail, what is kept and what can be written down of it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from onelaunch import emulator as cuda
from onelaunch.tape import CaptureError


@pytest.fixture
def x() -> Tensor:
    return torch.ones(4)


def graph_of(step: Callable[[], object], **options: bool) -> cuda.CUDAGraph:
    g = cuda.CUDAGraph(**options)
    with cuda.graph(g):
        step()
    return g


def test_calls_before_a_capture_say_what_is_missing() -> None:
    g = cuda.CUDAGraph()
    for call in (g.replay, g.pool, g.instantiate, g.capture_end, lambda: g.debug_dump("x.dot")):
        with pytest.raises(RuntimeError, match="capture"):
            call()
    g.reset()


def test_a_capture_needs_a_side_stream_a_known_mode_a_known_pool_and_a_graph_without_one(x: Tensor) -> None:
    g = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="non-default stream"):
        g.capture_begin()
    with pytest.raises(RuntimeError, match="got strict"), cuda.graph(g, capture_error_mode="strict"):
        pass
    with pytest.raises(RuntimeError, match="graph_pool_handle"), cuda.graph(g, pool=(7, 0)):
        pass
    with pytest.raises(NotImplementedError, match="tape"):
        cuda.graph(g, enable_annotations=True)
    with cuda.graph(g):
        y = x + 1
    with pytest.raises(RuntimeError, match="already owns"), cuda.graph(g):
        pass
    assert cuda.current_stream() == cuda.default_stream()
    g.replay()
    assert y.tolist() == [2, 2, 2, 2]


def test_a_capture_ends_on_its_stream_and_in_its_thread(x: Tensor) -> None:
    g, side, errors = cuda.CUDAGraph(), cuda.Stream(), []

    def end() -> None:
        try:
            g.capture_end()
        except RuntimeError as error:
            errors.append(str(error))

    with cuda.stream(side):
        g.capture_begin()
        y = x + 1
        with cuda.stream(cuda.Stream()):
            end()
        thread = threading.Thread(target=end)
        thread.start()
        thread.join()
        g.capture_end()
    assert "same stream" in errors[0]
    assert "another thread" in errors[1]
    g.replay()
    assert y.tolist() == [2, 2, 2, 2]


def test_a_capture_inside_another_ends_both(x: Tensor) -> None:
    outer, inner = cuda.CUDAGraph(), cuda.CUDAGraph()

    def nested() -> None:
        x + 1
        with cuda.graph(inner):
            x + 2

    with pytest.raises(CaptureError) as caught, cuda.graph(outer):
        nested()
    assert caught.value.rule == "nested-capture"
    assert outer.tape is inner.tape is None
    graph_of(lambda: x + 1).replay()


def test_an_exception_of_the_step_comes_through_and_leaves_everything_usable(x: Tensor) -> None:
    g = cuda.CUDAGraph()
    state = torch.get_rng_state()

    def step() -> None:
        x.add_(torch.rand(4))
        raise KeyError

    with pytest.raises(KeyError), cuda.graph(g):
        step()
    assert x.tolist() == [1, 1, 1, 1]
    assert torch.equal(torch.get_rng_state(), state)
    assert not cuda.is_current_stream_capturing()
    assert g.tape is None
    with cuda.graph(g):
        y = x + 1
    g.replay()
    assert y.tolist() == [2, 2, 2, 2]


def test_reset_ends_a_capture_that_was_left_open(x: Tensor) -> None:
    g = cuda.CUDAGraph()
    with cuda.stream(cuda.Stream()):
        g.capture_begin()
        x.add_(1)
        g.reset()
        assert not cuda.is_current_stream_capturing()
    assert x.tolist() == [1, 1, 1, 1]


def test_a_graph_that_was_reset_can_record_again(x: Tensor) -> None:
    g = graph_of(lambda: x.add_(1), keep_graph=True)
    g.replay()
    g.reset()
    with pytest.raises(RuntimeError, match="without a preceding"):
        g.replay()
    y = torch.zeros(4)
    with cuda.graph(g):
        y.add_(2)
    g.instantiate()
    g.replay()
    g.instantiate()
    g.replay()
    assert x.tolist() == [2, 2, 2, 2]
    assert y.tolist() == [4, 4, 4, 4]


def test_instantiate_is_the_callers_only_with_keep_graph(x: Tensor) -> None:
    with pytest.raises(RuntimeError, match="only when keep_graph=true"):
        graph_of(lambda: x + 1).instantiate()
    g = graph_of(lambda: x.add_(1), keep_graph=True)
    assert g.executor is None
    g.replay()
    assert g.executor is not None
    assert x.tolist() == [2, 2, 2, 2]


def test_raw_handles_are_refused_as_torch_does_and_then_because_there_are_none(x: Tensor) -> None:
    with pytest.raises(RuntimeError, match="keep_graph=true"):
        graph_of(lambda: x + 1).raw_cuda_graph()
    g = graph_of(lambda: x + 1, keep_graph=True)
    with pytest.raises(RuntimeError, match="until instantiate"):
        g.raw_cuda_graph_exec()
    with pytest.raises(RuntimeError, match="instantiate"):
        g.get_graph_data()
    g.instantiate()
    for call in (g.raw_cuda_graph, g.raw_cuda_graph_exec, g.end_capture_to_conditional_node):
        with pytest.raises(NotImplementedError, match="not emulated"):
            call()


def test_an_empty_capture_warns() -> None:
    with pytest.warns(UserWarning, match="The CUDA Graph is empty"):
        g = graph_of(lambda: None)
    g.replay()


def test_a_replay_inside_a_capture_is_refused(x: Tensor) -> None:
    g = graph_of(lambda: x + 1)
    with pytest.raises(CaptureError) as caught, cuda.graph(cuda.CUDAGraph()):
        g.replay()
    assert caught.value.rule == "not-emulated"


def test_what_happens_at_the_first_call_is_recorded_where_warm_up_was_forgotten(x: Tensor) -> None:
    class Lazy:
        table: Tensor | None = None

        def step(self) -> Tensor:
            if self.table is None:
                self.table = torch.arange(4.0).exp()
            return self.table + x

    cold, warm = Lazy(), Lazy()
    warm.step()
    kernels = [len(graph_of(lazy.step).tape.kernels) for lazy in (warm, cold)]
    assert kernels == [1, 3]
    assert cold.table is not None
    assert cold.table.isnan().all()  # and whoever reads it before a replay reads garbage


def test_a_dump_is_dot_with_the_tapes_kernels_and_dependencies(
    x: Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda.CUDAGraph, "_debug", False)
    path = tmp_path / "graph.dot"

    def step() -> Tensor:
        y = x + 1
        return y * 2 + y * 3

    g = graph_of(step)
    with pytest.warns(UserWarning, match="enable_debug_mode"):
        g.debug_dump(str(path))
    assert not path.exists()
    cuda.CUDAGraph().enable_debug_mode()
    g.debug_dump(str(path))
    first, *body, last = path.read_text(encoding="utf-8").splitlines()
    assert (first, last) == ("digraph tape {", "}")
    quoted = r'"(?:[^"\\]|\\.)*"'
    statement = re.compile(rf"  (?:k\d+ -> k\d+|\w+ \[\w+=(?:\w+|{quoted})(?:, \w+=(?:\w+|{quoted}))*\]);")
    assert all(statement.fullmatch(line) for line in body)
    nodes = [line for line in body if "label=" in line]
    assert [re.search(r"aten::\w+", line)[0] for line in nodes] == [  # type: ignore[index]
        kernel.name.split(".")[0] for kernel in g.tape.kernels
    ]
    assert all(Path(__file__).name in line for line in nodes)
    edges = {tuple(map(int, found)) for found in re.findall(r"k(\d+) -> k(\d+)", "\n".join(body))}
    assert edges == {(before, after) for after, all_ in enumerate(g.tape.dag()) for before in all_} != set()
