"""Streams and events: what a capture takes in, what it must get back, and who may ask for what meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch

from onelaunch import emulator as cuda
from onelaunch.tape import CaptureError


def test_a_stream_is_current_inside_with_and_not_after() -> None:
    first, second = cuda.Stream(), cuda.Stream()
    assert cuda.current_stream() == cuda.default_stream() != first
    with cuda.stream(first), second:
        assert cuda.current_stream() == second
        with cuda.stream(None):
            assert cuda.current_stream() == second
    assert cuda.current_stream() == cuda.default_stream()
    cuda.set_stream(first)
    assert cuda.current_stream() == first
    cuda.set_stream(cuda.default_stream())


def test_each_thread_has_its_own_current_stream() -> None:
    seen = []
    with cuda.stream(cuda.Stream()):
        thread = threading.Thread(target=lambda: seen.append(cuda.current_stream()))
        thread.start()
        thread.join()
    assert seen == [cuda.default_stream()]


def test_only_streams_that_were_made_to_wait_take_part() -> None:
    x, inside, outside = torch.ones(3), cuda.Stream(), cuda.Stream()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        origin = cuda.current_stream()
        assert cuda.CUDAGraph.get_currently_capturing_graph() is g
        with cuda.stream(inside):
            assert not cuda.is_current_stream_capturing()
        inside.wait_stream(origin)
        with cuda.stream(inside):
            assert cuda.is_current_stream_capturing()
            y = x * 2
        with cuda.stream(outside):
            assert not outside.is_capturing()
            at_once = x * 3
        origin.wait_stream(inside)
    assert at_once.tolist() == [3, 3, 3]
    assert [kernel.name for kernel in g.tape.kernels] == ["aten::mul.Tensor"]
    x.fill_(5)
    g.replay()
    assert y.tolist() == [10, 10, 10]
    assert at_once.tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match="not currently capturing"):
        cuda.CUDAGraph.get_currently_capturing_graph()


def test_edges_follow_the_streams_and_a_joined_branch_may_come_back_over_another() -> None:
    x, left, right = torch.ones(3), cuda.Stream(), cuda.Stream()
    g = cuda.CUDAGraph(keep_graph=True)
    with cuda.graph(g):
        origin = cuda.current_stream()
        a = x + 1  # 0
        left.wait_stream(origin)
        with cuda.stream(left):
            b = a * 2  # 1
        right.wait_stream(left)
        with cuda.stream(right):
            c = a * 3  # 2
        d = a * 4  # 3
        origin.wait_stream(right)  # and so after left as well
        e = b + c + d  # 4, 5
    g.instantiate()
    nodes = g.get_graph_data()["nodes"]
    assert [node["dependencies"] for node in nodes] == [[], [0], [1], [0], [2, 3], [4]]
    assert [node["dependents"] for node in nodes] == [[1, 3], [2], [4], [4], [5], []]
    g.replay()
    assert e.tolist() == [18, 18, 18]


def test_work_after_the_join_must_be_joined_again() -> None:
    x, side = torch.ones(3), cuda.Stream()

    def step() -> None:
        origin = cuda.current_stream()
        side.wait_stream(origin)
        origin.wait_stream(side)
        with cuda.stream(side):
            x + 1

    with pytest.raises(CaptureError) as caught, cuda.graph(cuda.CUDAGraph()):
        step()
    assert caught.value.rule == "unjoined-stream"


def test_a_capture_cannot_wait_for_work_outside_but_for_an_event_never_recorded() -> None:
    before = cuda.Stream().record_event()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        cuda.current_stream().wait_event(cuda.Event())
        torch.ones(2) + 1
    with pytest.raises(CaptureError) as caught, cuda.graph(cuda.CUDAGraph()):
        cuda.current_stream().wait_event(before)
    assert caught.value.rule == "isolation"


@pytest.mark.parametrize(
    "call",
    [
        lambda event: cuda.synchronize(),
        lambda event: cuda.current_stream().synchronize(),
        lambda event: cuda.current_stream().query(),
        lambda event: cuda.Stream().query(),
        lambda event: event.query(),
        lambda event: event.synchronize(),
    ],
)
def test_a_wait_inside_a_capture_ends_it_even_if_the_error_is_caught(call: Callable[[cuda.Event], object]) -> None:
    event = cuda.Stream().record_event()
    g = cuda.CUDAGraph()

    def step() -> None:
        with pytest.raises(CaptureError, match="wait"):
            call(event)

    with pytest.raises(CaptureError) as caught, cuda.graph(g):
        step()
    assert caught.value.rule == "invalidated"
    assert g.tape is None


@pytest.mark.parametrize(("mode", "here", "elsewhere"), [("global", 0, 0), ("thread_local", 0, 1), ("relaxed", 1, 1)])
def test_the_error_mode_decides_about_work_outside_of_the_capture(mode: str, here: int, elsewhere: int) -> None:
    event, results = cuda.Stream().record_event(), []

    def ask() -> None:
        try:
            results.append(event.query())
        except CaptureError:
            results.append(False)

    for in_thread in (False, True):
        g = cuda.CUDAGraph()
        try:
            with cuda.graph(g, capture_error_mode=mode):
                torch.ones(2) + 1
                if in_thread:
                    thread = threading.Thread(target=ask)
                    thread.start()
                    thread.join()
                else:
                    ask()
        except CaptureError:
            assert g.tape is None
    assert results == [bool(here), bool(elsewhere)]


def test_an_event_of_a_capture_tells_no_time_and_others_do() -> None:
    captured, start, end = cuda.Event(enable_timing=True), *(cuda.Event(enable_timing=True) for _ in range(2))
    with cuda.graph(cuda.CUDAGraph()):
        torch.ones(2) + 1
        captured.record()
    start.record()
    end.record()
    assert start.elapsed_time(end) >= 0
    with pytest.raises(RuntimeError, match="last recorded in a capturing stream"):
        captured.elapsed_time(end)
    with pytest.raises(ValueError, match="recorded before"):
        start.elapsed_time(cuda.Event(enable_timing=True))
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(cuda.Event())
    with pytest.raises(CaptureError, match="external"), cuda.graph(cuda.CUDAGraph()):
        cuda.Event(external=True).record()
