"""What launching costs on a GPU: one kernel, one kernel and the wait for it, a graph by its number of nodes.

The host's times are taken while the GPU has room in its queue, so that nothing but the launch is timed: each sample
begins with an idle GPU and holds at most a few hundred launches. The device's times come from events around work that
was all launched before the device began: a spinning kernel holds it until the host is through, else the events would
time the host.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from onelaunch.timeline.fit import Estimate, Line, estimate, fit_line
from onelaunch.timeline.host_costs import Add, Key, Medians, stack
from onelaunch.timeline.timing import Clock, Statement, Subject

NODES = (1, 25, 50, 100, 200, 400, 800)
QUEUE = 200  # launches in a sample; the queue of a stream holds about a thousand
CALLS = {
    "bare launch": "sleep(0)",  # one thread that returns at once, without PyTorch's dispatcher
    "torch.add(a, b, out=c)": "torch.add(a, b, out=c)",
    "a + b": "a + b",
    "module(a, b)": "module(a, b)",
}
WAIT = "torch.add(a, b, out=c); synchronize()"


@dataclass(frozen=True)
class GpuCosts:
    """What launching costs on one GPU.

    calls: way to launch one kernel -> the host's time, the GPU working behind it. wait: launch and synchronize.
    graph_launch: the host's time to launch a graph, against its nodes. graph_run: the device's time to run it; its
    slope is an empty kernel and the gap to the next. stream_run: the same for kernels launched one by one, all of them
    before the device began; None where the device could not be held.
    """

    calls: Mapping[str, Estimate]
    wait: Estimate
    graph_launch: Line
    graph_run: Line
    stream_run: Estimate | None


@dataclass
class Gpu:
    """The device and what is timed on it. api: ``torch.cuda`` or what has its names. names: what a timed line uses."""

    api: Any = torch.cuda
    device: str = "cuda"
    clock: Clock = time.perf_counter
    names: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.names:
            a, b, c = (torch.ones(1, device=self.device) for _ in range(3))
            self.names = {"torch": torch, "module": Add(), "a": a, "b": b, "c": c}
        self.names["synchronize"] = self.api.synchronize
        if hasattr(self.api, "_sleep"):
            self.names["sleep"] = self.api._sleep
        self.hold = Hold(self.api) if hasattr(self.api, "_sleep") else None

    def subjects(self) -> dict[Key, Subject]:
        """Everything to time, by what it is. Captures the graphs."""
        made: dict[Key, Subject] = {}
        for name, code in CALLS.items():
            if "sleep" not in code or "sleep" in self.names:
                made["gpu call", name] = self._statement(code)
        made["gpu wait", ""] = self._statement(WAIT)
        for nodes in NODES:
            graph = self.graph(nodes)
            # One replay a sample: a graph that is launched while it still runs may have to wait for itself.
            made["gpu launch", nodes] = self._statement("graph.replay()", {"graph": graph}, most=1)
            replay = self._statement("graph.replay()", {"graph": graph})
            made["gpu run", nodes] = DeviceTime(self.api, replay, self.hold, most=1)
        if self.hold is not None:
            launch = self._statement("torch.add(a, b, out=c)")
            made["gpu stream", ""] = DeviceTime(self.api, launch, self.hold, most=QUEUE)
        return made

    def costs(self, medians: Medians) -> GpuCosts:
        """What the timings of ``subjects`` say. medians: [1 + draws] for each of them."""
        stream = medians.get(("gpu stream", ""))
        return GpuCosts(
            calls={str(name): estimate(times) for (what, name), times in medians.items() if what == "gpu call"},
            wait=estimate(medians["gpu wait", ""]),
            graph_launch=fit_line(NODES, stack(medians, "gpu launch", NODES), "node"),
            graph_run=fit_line(NODES, stack(medians, "gpu run", NODES), "node"),
            stream_run=None if stream is None else estimate(stream),
        )

    def graph(self, nodes: int) -> Any:
        """A graph of ``nodes`` empty-ish kernels in a row."""
        add = self.names["torch"].add
        a, b, c = (self.names[name] for name in "abc")

        def step(times: int) -> None:
            for _ in range(times):
                add(a, b, out=c)

        side = self.api.Stream()
        side.wait_stream(self.api.current_stream())
        with torch.inference_mode(), self.api.stream(side):
            step(1)
        self.api.current_stream().wait_stream(side)
        graph = self.api.CUDAGraph()
        with torch.inference_mode(), self.api.graph(graph):
            step(nodes)
        return graph

    def _statement(self, code: str, more: Mapping[str, Any] | None = None, most: int = QUEUE) -> Statement:
        names = {**self.names, **(more or {})}
        return Statement(code, names, torch.inference_mode, self.api.synchronize, most, self.clock)


class Hold:
    """Keeps the device busy while the host launches. cycles: of the device's clock, doubled where that is too short."""

    def __init__(self, api: Any, cycles: int = 1_000_000) -> None:
        self.api, self.cycles = api, cycles

    def __call__(self) -> None:
        self.api._sleep(self.cycles)

    def lengthen(self) -> None:
        """Raises RuntimeError where the device is free again long before the host, however long it was held."""
        if self.cycles > 10**9:
            raise RuntimeError(
                "the device was to be held until the host has launched its work, and was free again after "
                f"{self.cycles:,} cycles. Something makes each launch wait; is CUDA_LAUNCH_BLOCKING set?"
            )
        self.cycles *= 2


@dataclass
class DeviceTime:
    """The device's time for ``work`` that the host had launched before the device began. Without a hold, the device
    begins when it can."""

    api: Any
    work: Statement
    hold: Hold | None
    most: int

    def __post_init__(self) -> None:
        self.work.before = None  # it would wait for the hold

    def sample(self, number: int) -> float:
        while True:
            start, end = (self.api.Event(enable_timing=True) for _ in range(2))
            self.api.synchronize()
            if self.hold is not None:
                self.hold()
            start.record()
            self.work.sample(number)
            end.record()
            ahead = self.hold is None or not start.query()
            end.synchronize()
            if ahead:
                return float(start.elapsed_time(end)) / 1e3
            assert self.hold is not None
            self.hold.lengthen()
