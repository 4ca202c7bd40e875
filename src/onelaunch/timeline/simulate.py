"""A decode step on a GPU that you don't have: what the host does and what the device does, side by side in time.

The host prepares the step and launches; the device runs kernels one after the other, each when it has been launched and
the one before it is done. In between stands a queue of bounded length: a host that is that far ahead waits. Everything
here is simulated, and a figure or a table that shows it says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from onelaunch.timeline.hardware import Hardware, hardware
from onelaunch.timeline.roofline import Efficiency, KernelCost, kernel_costs, time_us

if TYPE_CHECKING:
    from onelaunch.tape import Tape

Mode = Literal["eager", "graph", "piecewise"]


@dataclass(frozen=True)
class LaunchCosts:
    """What launching costs. All in microseconds, except ``queue``.

    launch_us: the host, for each kernel that it launches eagerly, with all of the framework above it. graph_us,
    node_us: the host, for launching a graph, and on top for each kernel in it (reported from 0.001 to 1). prepare_us:
    the host, before the first launch of a step. finish_us: the host, after the device is done. delay_us: from the end
    of a launch until the kernel can start. stream_gap_us, graph_gap_us: the device, between two kernels of a stream, of
    a graph. queue: launches that can wait on the device. About 1,024 on CUDA, see forums.developer.nvidia.com/t/68937.
    """

    launch_us: float = 5.0
    graph_us: float = 5.0
    node_us: float = 0.0
    prepare_us: float = 0.0
    finish_us: float = 0.0
    delay_us: float = 0.0
    stream_gap_us: float = 1.3
    graph_gap_us: float = 0.5
    queue: int = 1024

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= (1 if name == "queue" else 0):
                raise ValueError(f"{name} is too small: {value!r}")


@dataclass(frozen=True)
class Span:
    """Something that one lane is busy with, in microseconds since the step began. kernel: its number, for a kernel."""

    name: str
    start_us: float
    end_us: float
    kernel: int | None = None

    @property
    def us(self) -> float:
        return self.end_us - self.start_us


@dataclass(frozen=True)
class Step:
    """A simulated step.

    host: prepare, launches, waits, finish; "wait" is the host standing still, for the queue or for the device. device:
    the kernels. step_us: how long after one step the next one ends.
    """

    mode: Mode
    host: tuple[Span, ...]
    device: tuple[Span, ...]
    step_us: float

    @property
    def busy_us(self) -> float:
        """Time in which the device runs kernels."""
        return sum(span.us for span in self.device)

    @property
    def busy_share(self) -> float:
        """Share of the step in which the device runs kernels."""
        return self.busy_us / self.step_us

    @property
    def host_us(self) -> float:
        """Time in which the host works."""
        return sum(span.us for span in self.host if span.name != "wait")

    @property
    def gaps(self) -> tuple[Span, ...]:
        """Where the device stands still between two kernels. ``kernel`` is the one that it waits for."""
        pairs = zip(self.device, self.device[1:], strict=False)
        return tuple(
            Span("gap", before.end_us, after.start_us, after.kernel)
            for before, after in pairs
            if after.start_us > before.end_us
        )

    @property
    def gap_us(self) -> float:
        """Sum of the gaps between kernels."""
        return sum(gap.us for gap in self.gaps)

    @property
    def device_waits_us(self) -> float:
        """Time of the step in which the device runs nothing."""
        return self.step_us - self.busy_us

    @property
    def host_waits_us(self) -> float:
        """Time of the step in which the host does nothing."""
        return self.step_us - self.host_us

    @property
    def launch_bound(self) -> bool:
        """Whether the device waits longer for the host than the host for the device."""
        return self.device_waits_us > self.host_waits_us


def speedup(before: Step, after: Step) -> float:
    """How many times faster ``after`` is: 1.25 means that 5 steps take the time of 4."""
    return before.step_us / after.step_us


def simulate(
    kernels: Tape | Sequence[KernelCost],
    gpu: str | Hardware,
    mode: Mode = "eager",
    *,
    launch: LaunchCosts | None = None,
    efficiency: Efficiency | None = None,
    context_len: int | None = None,
    overlap: bool = False,
) -> Step:
    """One decode step on ``gpu``.

    kernels: a tape (``context_len`` as in ``kernel_costs``), or costs from ``kernel_costs`` or ``fused_costs``. mode:
    "eager" launches every kernel, "graph" all of them at once, "piecewise" attention eagerly and what is between as
    graphs. overlap: see ``lay_out``.
    """
    gpu = hardware(gpu)
    costs = kernels if isinstance(kernels, Sequence) else kernel_costs(kernels, context_len)
    if not all(isinstance(cost, KernelCost) for cost in costs):
        raise TypeError("simulate needs a tape or KernelCosts; lay_out takes [(name, microseconds), ...].")
    known: dict[tuple[object, ...], float] = {}  # layers are alike
    times = []
    for cost in costs:
        key = (cost.bytes, cost.operations, cost.rate, cost.extra_us)
        if key not in known:
            known[key] = time_us(cost, gpu, efficiency)
        times.append((cost.name, known[key]))
    eager = [index for index, cost in enumerate(costs) if cost.kind == "attention"]
    return lay_out(times, mode, launch=launch, eager=eager, overlap=overlap)


def lay_out(
    times: Sequence[tuple[str, float]],
    mode: Mode = "eager",
    *,
    launch: LaunchCosts | None = None,
    eager: Iterable[int] = (),
    overlap: bool = False,
) -> Step:
    """The same from kernels whose times are known: ``[(name, microseconds), ...]``.

    eager: numbers of the kernels that "piecewise" launches one by one. overlap: the host prepares the next step while
    the device runs this one, so that of the two only the slower counts (an engine with asynchronous scheduling);
    without it the host waits for the device at the end of each step, as it must to look at the tokens.
    """
    if not times:
        raise ValueError("a step needs at least one kernel, found none.")
    launch = launch or LaunchCosts()
    lanes = _Lanes(launch, times)
    if launch.prepare_us:
        lanes.work("prepare", launch.prepare_us)
    for numbers, as_graph in _launches(len(times), mode, frozenset(eager)):
        if as_graph:
            lanes.launch_graph(numbers)
        else:
            lanes.launch_kernel(numbers[0])
    if overlap:
        if launch.finish_us:
            lanes.work("finish", launch.finish_us)
        host = sum(span.us for span in lanes.host if span.name != "wait")
        device = sum(span.us for span in lanes.device) + lanes.own_gaps_us
        return Step(mode, tuple(lanes.host), tuple(lanes.device), max(host, device))
    lanes.wait_until(lanes.device[-1].end_us)
    if launch.finish_us:
        lanes.work("finish", launch.finish_us)
    return Step(mode, tuple(lanes.host), tuple(lanes.device), lanes.now)


def _launches(kernels: int, mode: Mode, eager: frozenset[int]) -> Iterable[tuple[list[int], bool]]:
    """What is launched at once: numbers of kernels, and whether as a graph."""
    if mode == "eager":
        return (([number], False) for number in range(kernels))
    if mode == "graph":
        return [(list(range(kernels)), True)]
    if mode != "piecewise":
        raise ValueError(f"mode must be 'eager', 'graph' or 'piecewise', found {mode!r}")
    pieces: list[tuple[list[int], bool]] = []
    for alone, group in groupby(range(kernels), key=eager.__contains__):
        numbers = list(group)
        pieces += [([number], False) for number in numbers] if alone else [(numbers, True)]
    return pieces


class _Lanes:
    """The two lanes while they are being filled."""

    def __init__(self, launch: LaunchCosts, times: Sequence[tuple[str, float]]) -> None:
        self.launch, self.times = launch, times
        self.now = 0.0  # of the host
        self.free = 0.0  # of the device
        self.host: list[Span] = []
        self.device: list[Span] = []
        self.starts: list[float] = []  # of the first kernel of each launch, which is when it leaves the queue
        self.own_gaps_us = 0.0

    def work(self, name: str, us: float, kernel: int | None = None) -> None:
        self.host.append(Span(name, self.now, self.now + us, kernel))
        self.now += us

    def wait_until(self, time_us: float) -> None:
        if time_us > self.now:
            self.work("wait", time_us - self.now)
            self.now = time_us

    def launch_kernel(self, number: int) -> None:
        self._queue()
        self.work("launch", self.launch.launch_us, number)
        self.starts.append(self._run(number, self.now + self.launch.delay_us, self.launch.stream_gap_us))

    def launch_graph(self, numbers: Sequence[int]) -> None:
        self._queue()
        self.work("graph launch", self.launch.graph_us + self.launch.node_us * len(numbers))
        ready, gap = self.now + self.launch.delay_us, self.launch.stream_gap_us
        for position, number in enumerate(numbers):
            start = self._run(number, ready, gap)
            if position == 0:
                self.starts.append(start)
                gap = self.launch.graph_gap_us

    def _queue(self) -> None:
        """A launch needs a place in the queue."""
        ahead = len(self.starts) - self.launch.queue
        if ahead >= 0:
            self.wait_until(self.starts[ahead])

    def _run(self, number: int, ready: float, gap: float) -> float:
        name, us = self.times[number]
        if self.device:
            self.own_gaps_us += gap
        start = max(ready, self.free + gap if self.device else 0.0)
        self.device.append(Span(name, start, start + us, number))
        self.free = start + us
        return start
