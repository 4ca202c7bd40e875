"""What launching costs: known costs of a pretended GPU come out, and what was not measured is said."""

from __future__ import annotations

import dataclasses
import json
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from onelaunch import emulator
from onelaunch.timeline import costs, host_costs
from onelaunch.timeline.fit import Estimate, resampled_medians
from onelaunch.timeline.gpu_costs import Gpu, GpuCosts
from onelaunch.timeline.timing import take_rounds


class PretendedGpu:
    """``torch.cuda`` with a clock of its own: a host and a device whose costs are known, in seconds."""

    LAUNCH, BARE, KERNEL, WAIT, GRAPH, NODE, NODE_RUNS = 5e-6, 2e-6, 1.5e-6, 4e-6, 6e-6, 0.2e-6, 1.1e-6

    def __init__(self, blocking: bool = False) -> None:
        self.host = self.free = 0.0
        self.blocking, self.longest_queue = blocking, 0
        self.captured: Any = None
        gpu = self

        class Event:
            def __init__(self, enable_timing: bool = False) -> None:
                assert enable_timing

            def record(self) -> None:
                gpu.host += 0.3e-6
                self.at = gpu.free = max(gpu.host, gpu.free)

            def query(self) -> bool:
                return gpu.host >= self.at

            def synchronize(self) -> None:
                gpu.host = max(gpu.host, self.at)

            def elapsed_time(self, end: Any) -> float:
                return 1e3 * (end.at - self.at)

        class CUDAGraph:
            nodes = 0

            def replay(self) -> None:
                gpu.enqueue(gpu.GRAPH + gpu.NODE * self.nodes, gpu.NODE_RUNS * self.nodes)

        self.Event, self.CUDAGraph = Event, CUDAGraph
        self.Stream = self.current_stream = lambda: SimpleNamespace(wait_stream=lambda other: None)

    def enqueue(self, host_s: float, device_s: float) -> None:
        self.host += host_s
        self.free = max(self.host, self.free) + device_s
        if self.blocking:
            self.synchronize()

    def add(self, *args: object, **kwargs: object) -> None:
        if self.captured is not None:
            self.captured.nodes += 1
        else:
            self.enqueue(self.LAUNCH, self.KERNEL)

    def _sleep(self, cycles: int) -> None:
        self.enqueue(self.BARE, cycles * 0.5e-9)

    def synchronize(self) -> None:
        self.host = max(self.host, self.free) + self.WAIT

    @contextmanager
    def graph(self, graph: Any) -> Any:
        self.captured = graph
        yield
        self.captured = None

    @contextmanager
    def stream(self, stream: Any) -> Any:
        yield

    def measured(self) -> GpuCosts:
        a = SimpleNamespace()
        names = {"torch": self, "module": self.add, "a": Addable(self), "b": a, "c": a}
        gpu = Gpu(api=self, clock=lambda: self.host, names=names)
        subjects = gpu.subjects()
        table = take_rounds(subjects, 0.5, lambda: self.host)
        return gpu.costs(dict(zip(subjects, resampled_medians(table, draws=50).T, strict=True)))


@dataclasses.dataclass
class Addable:
    gpu: PretendedGpu

    def __add__(self, other: object) -> None:
        self.gpu.add()


def test_the_costs_of_a_gpu_come_out() -> None:
    found = PretendedGpu().measured()
    one_more = PretendedGpu.LAUNCH + PretendedGpu.KERNEL + PretendedGpu.WAIT
    for time, expected in (
        (found.calls["bare launch"], PretendedGpu.BARE),
        (found.calls["a + b"], PretendedGpu.LAUNCH),
        (found.calls["torch.add(a, b, out=c)"], PretendedGpu.LAUNCH),
        (found.wait, one_more),
        (found.graph_launch.start, PretendedGpu.GRAPH),
        (found.graph_launch.each, PretendedGpu.NODE),
        (found.graph_run.each, PretendedGpu.NODE_RUNS),
        (found.stream_run, PretendedGpu.KERNEL),
    ):
        assert time is not None
        assert time.us == pytest.approx(1e6 * expected, rel=0.05)


def test_a_device_that_is_not_held_long_enough_is_held_longer() -> None:
    class Quick(PretendedGpu):
        def _sleep(self, cycles: int) -> None:
            self.enqueue(self.BARE, cycles * 1e-12)  # a million cycles are over at once

    found = Quick().measured()
    assert found.stream_run is not None
    assert found.stream_run.us == pytest.approx(1.5, rel=0.05)


def test_a_device_that_makes_every_launch_wait_is_found_out() -> None:
    with pytest.raises(RuntimeError, match="CUDA_LAUNCH_BLOCKING"):
        PretendedGpu(blocking=True).measured()


def test_the_same_calls_run_on_the_emulator() -> None:
    """The emulator refuses what torch.cuda would, and takes the arguments that it takes."""
    gpu = Gpu(api=emulator, device="cpu")
    subjects = gpu.subjects()
    assert gpu.graph(25).tape is not None
    assert len(gpu.graph(25).tape.kernels) == 25
    for subject in subjects.values():
        assert subject.sample(1) > 0
    made_up = resampled_medians(np.random.default_rng(0).uniform(1, 2, (20, len(subjects))), draws=20)
    found = gpu.costs(dict(zip(subjects, made_up.T, strict=True)))
    assert found.stream_run is None
    assert "bare launch" not in found.calls


@pytest.mark.gpu
def test_the_costs_of_this_gpu_are_measured() -> None:
    found = costs.measure(3.0, "cuda").gpu
    assert found is not None
    assert found.wait.us > found.calls["torch.add(a, b, out=c)"].us
    assert found.graph_launch.at(400) < 400 * found.calls["a + b"].us
    assert found.stream_run is not None


@pytest.fixture(scope="module")
def measured() -> costs.Costs:
    return costs.measure(0.5, "cpu")


def test_everything_of_the_host_is_measured(measured: costs.Costs) -> None:
    assert measured.rounds >= 10
    assert list(measured.calls) == list(host_costs.CALLS)
    assert list(measured.replay) == host_costs.players()
    assert [x for x, _ in measured.operation.points] == list(host_costs.SIZES)
    for time in (measured.operation.start, *measured.calls.values(), *(line.each for line in measured.replay.values())):
        assert time.us > 0
        assert time.low_us <= time.high_us
    assert measured.date
    assert measured.hardware["cpu"]
    assert measured.versions["torch"] == torch.__version__


def test_the_parts_add_up_to_the_module_call(measured: costs.Costs) -> None:
    whole = measured.calls["module(a, b)"].us + measured.operation.each.us * host_costs.ELEMENTS
    assert sum(part.us for part in measured.parts.values()) == pytest.approx(whole)


def test_what_was_not_measured_is_said_with_the_reason(measured: costs.Costs) -> None:
    assert measured.gpu is None
    assert "not measured: " in str(measured)
    assert "not measured: " in measured._repr_html_()


def test_json_brings_the_same_costs_back(measured: costs.Costs) -> None:
    assert costs.Costs.from_json(measured.to_json()) == measured
    gpu = PretendedGpu().measured()
    with_gpu = dataclasses.replace(measured, gpu=gpu, not_measured={})
    assert costs.Costs.from_json(with_gpu.to_json()) == with_gpu
    assert "for each node of a graph" in str(with_gpu)
    assert "in a stream" in with_gpu._repr_html_()


def test_a_page_is_not_broken_by_what_it_shows(measured: costs.Costs) -> None:
    named = dataclasses.replace(measured, hardware={"cpu": "<b>&", "cores": 2}, calls={"a < b": Estimate(1, 1, 1)})
    assert "&lt;b&gt;&amp;" in named._repr_html_()
    assert "a &lt; b" in named._repr_html_()


def test_the_simulator_takes_what_was_measured_on_a_gpu(measured: costs.Costs) -> None:
    launch = dataclasses.replace(measured, gpu=PretendedGpu().measured()).launch_costs()
    assert launch.launch_us == pytest.approx(5, rel=0.05)
    assert launch.graph_us == pytest.approx(6, rel=0.05)
    assert launch.node_us == pytest.approx(0.2, rel=0.05)
    with pytest.raises(ValueError, match="the GPU was not measured"):
        measured.launch_costs()


@pytest.mark.parametrize("text", ["[]", "{}", '{"gpu": 1}', "3", json.dumps({"operation": 1, "gpu": None})])
def test_json_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="onelaunch bench --json"):
        costs.Costs.from_json(text)


@pytest.mark.parametrize(
    ("budget_s", "device", "said"),
    [(0, None, "seconds above 0"), (1, "tpu", "'cpu', 'cuda' or None; found 'tpu'"), (1, 3, "found 3")],
)
def test_nonsense_is_refused(budget_s: float, device: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        costs.measure(budget_s, device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="torch finds no GPU here"):
        costs.measure(1, "cuda")
