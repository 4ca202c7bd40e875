"""What a torch.profiler trace says about launches: how busy the device was, what it waited for, and what a graph would
save at most.

``open_trace`` reads a trace (``trace_events``), finds each wait of each device and its cause (``trace_gaps``) and the
steps that repeat (``trace_steps``). The result is data; ``trace_report`` puts it into words, ``trace_html`` draws it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onelaunch.timeline import trace_gaps, trace_steps
from onelaunch.timeline.trace_events import KERNEL, MEMCPY, OPERATOR, PYTHON, RUNTIME, Profile, Spans, read
from onelaunch.timeline.trace_gaps import LATENCY_US, Gaps
from onelaunch.timeline.trace_reader import TraceError, TruncatedTraceError

__all__ = ["Device", "Gap", "Launches", "Steps", "Stretch", "Trace", "TraceError", "TruncatedTraceError", "open_trace"]

CAUSES = ("launch", "sync", "queue", "graph")
GRAPH_LAUNCH = re.compile(r"^(cuda|cu|hip)GraphLaunch")
# cudaLaunchKernel, cudaLaunchKernelExC, cuLaunchKernelEx, hipExtModuleLaunchKernel, cudaLaunchCooperativeKernel, ...
LAUNCH = re.compile(r"^(cuda|cu|hip)\w*Launch\w*Kernel")
# Copies without Async return when they are done. So does a copy to host memory that is not pinned, but its name is that
# of the others.
SYNCHRONIZE = re.compile(r"Synchronize|^(cuda|cu|hip)Memcpy(?!\w*Async)")
READ_BACK = re.compile(r"DtoH|Device -> (Host|Pinned|Pageable)")


@dataclass(frozen=True)
class Stretch:
    """A stretch of a device's time, in microseconds.

    busy_us: something ran, on any stream. launch_us, sync_us, queue_us, graph_us: nothing ran, by cause
    (``trace_gaps``). The five add up to ``span_us``. long_queue_us: the part of queue_us in which work had been
    launched for longer than a launch takes to arrive. saving_us: what a graph would save at most.
    """

    start_us: float
    end_us: float
    kernels: int
    copies: int  # and memsets
    graph_launches: int
    busy_us: float
    launch_us: float
    sync_us: float
    queue_us: float
    graph_us: float
    long_queue_us: float
    saving_us: float

    @property
    def span_us(self) -> float:
        return self.end_us - self.start_us

    @property
    def active_us(self) -> float:
        """Without synchronizations and long waits in a queue: neither is what launches cost."""
        return self.span_us - self.sync_us - self.long_queue_us

    def share(self, part: str) -> float:
        """The share of the time that is ``busy``, ``launch``, ``sync``, ``queue`` or ``graph``."""
        return float(getattr(self, f"{part}_us")) / self.span_us if self.span_us > 0 else 0.0


@dataclass(frozen=True)
class Gap:
    """A wait of a device: when, why, what came after it, and what the host was doing meanwhile, outermost first."""

    start_us: float
    end_us: float
    causes_us: dict[str, float]
    next: str
    launched_by: str
    host: list[str]
    between_steps: bool

    @property
    def cause(self) -> str:
        return max(self.causes_us, key=lambda cause: self.causes_us[cause])


@dataclass(frozen=True)
class Steps:
    """The steps of a device. source: how they were found. are_steps: False where they might as well be layers.

    A step lasts from its first activity on the device to that of the next step, the last one to its own last activity.
    median: the one whose time is the median of all but the last.
    """

    source: str
    are_steps: bool
    all: list[Stretch]
    median: Stretch


@dataclass(frozen=True)
class Launches:
    """How often the host called something, and what a call took it."""

    name: str
    calls: int
    median_us: float
    total_us: float


@dataclass(frozen=True)
class Device:
    """One device of a trace. attributed: False where the trace has no launches, so that no wait has a cause."""

    number: str
    hardware: str
    streams: int
    attributed: bool
    whole: Stretch
    steps: Steps | None
    largest: list[Gap]
    slowest: list[tuple[str, int, float]]  # kernel, how often, microseconds in all
    spans: Spans = field(repr=False)
    gaps: Gaps = field(repr=False)
    call_of: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True)
class Trace:
    """A trace, analysed. devices: the one with the most kernels first. calls: what the host called, by start."""

    path: Path
    devices: list[Device]
    launches: list[Launches]
    graph_launches: list[Launches]
    profile: Profile = field(repr=False)
    calls: Spans = field(repr=False)


def open_trace(path: str | Path, largest: int = 10) -> Trace:
    """Read and analyse the trace at ``path``. largest: how many of the largest waits to describe.

    What a graph would save at most is every wait outside of graph launches, but for its part in synchronizations, with
    which a step cannot be captured, and the part of a queue's wait beyond ``LATENCY_US``, which has other reasons. The
    wait before a step's first activity is not counted either: one launch remains, and what the host does between steps.
    It is a bound: it assumes that everything can be captured, and that nothing waits inside a graph.

    Raises TraceError with one sentence where the file cannot be read as a trace of a device.
    """
    profile = read(path)
    runtime = profile.host.where(profile.host.kind == RUNTIME)
    calls = runtime.where(runtime.correlation >= 0)
    syncs = runtime.where(_matching(profile, SYNCHRONIZE)[runtime.name])
    is_graph = _matching(profile, GRAPH_LAUNCH)[calls.name]
    process_of_lane = np.array([lane.process for lane in profile.lanes], object)
    devices = []
    for number in sorted(set(process_of_lane[np.unique(profile.device.lane)])):
        spans = profile.device.where(process_of_lane[profile.device.lane] == number)
        devices.append(_device(profile, number, spans, calls, is_graph, syncs, largest))
    devices.sort(key=lambda device: -device.whole.kernels)
    return Trace(
        path=Path(path),
        devices=devices,
        launches=_counted(profile, runtime, LAUNCH),
        graph_launches=_counted(profile, runtime, GRAPH_LAUNCH),
        profile=profile,
        calls=calls,
    )


def _matching(profile: Profile, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    """For each name of the profile, whether the pattern finds something in it."""
    return np.array([bool(pattern.search(name)) for name in profile.names], bool)


def _counted(profile: Profile, runtime: Spans, pattern: re.Pattern[str]) -> list[Launches]:
    counted = []
    for name in np.flatnonzero(_matching(profile, pattern)).tolist():
        took = (runtime.end - runtime.start)[runtime.name == name]
        if len(took):
            counted.append(Launches(profile.names[name], len(took), float(np.median(took)), float(took.sum())))
    return sorted(counted, key=lambda each: -each.calls)


def _device(
    profile: Profile,
    number: str,
    spans: Spans,
    calls: Spans,
    is_graph: NDArray[np.bool_],
    syncs: Spans,
    largest: int,
) -> Device:
    call_of = trace_gaps.match(spans, calls)
    gaps = trace_gaps.attribute(spans, calls, call_of, is_graph, syncs)
    known = call_of >= 0
    issued = np.where(known, calls.start[call_of], np.nan) if len(calls) else np.full(len(spans), np.nan)
    read_back = (spans.kind == MEMCPY) & _matching(profile, READ_BACK)[spans.name]
    reads = np.sort(np.concatenate((syncs.start, issued[read_back & known])))
    cuts = trace_steps.find(profile, spans, issued, reads)
    between = np.isin(gaps.next, cuts.first) if cuts is not None else np.zeros(len(gaps), bool)
    gaps.saving[between] = 0
    of_graph = np.flatnonzero(known & is_graph[call_of]) if len(calls) else np.zeros(0, np.int64)
    _, first = np.unique(call_of[of_graph], return_index=True)
    sums = _Sums(spans, gaps, np.sort(spans.start[of_graph[first]]))
    last_end = float(spans.end.max())
    hardware = profile.hardware.get(number, "")
    if not hardware and len(set(profile.hardware.values())) == 1:  # HIP counts the devices in two ways
        hardware = next(iter(profile.hardware.values()))
    order = np.argsort(gaps.start - gaps.end, kind="stable")[:largest]
    order = order[(gaps.end - gaps.start)[order] >= 0.05]  # less is rounding
    return Device(
        number=number,
        hardware=hardware,
        streams=len(np.unique(spans.lane)),
        attributed=bool(known.any()),
        whole=sums.stretch(float(spans.start[0]), last_end),
        steps=None if cuts is None else _steps(cuts, spans, sums),
        largest=[_described(profile, spans, gaps, calls, index, bool(between[index])) for index in order.tolist()],
        slowest=_slowest(profile, spans),
        spans=spans,
        gaps=gaps,
        call_of=call_of,
    )


class _Sums:
    """What lies between two times, from running totals."""

    def __init__(self, spans: Spans, gaps: Gaps, graph_launches: NDArray[np.float64]) -> None:
        self.spans, self.gaps, self.graph_launches = spans, gaps, graph_launches
        columns = [gaps.end - gaps.start, *(getattr(gaps, cause) for cause in CAUSES)]
        columns += [np.maximum(gaps.queue - LATENCY_US, 0), gaps.saving]
        self.totals = [np.concatenate(([0.0], np.cumsum(column))) for column in columns]
        self.kernels = np.concatenate(([0], np.cumsum(spans.kind == KERNEL)))

    def stretch(self, start: float, end: float) -> Stretch:
        """From the start of one activity to the start of another, or to the end of all."""
        low = int(np.searchsorted(self.gaps.start, start, side="left"))
        high = int(np.searchsorted(self.gaps.end, end, side="right"))
        idle, *causes = (float(total[max(low, high)] - total[low]) for total in self.totals)
        i, j = np.searchsorted(self.spans.start, (start, end), side="left").tolist()
        kernels = int(self.kernels[j] - self.kernels[i])
        graphs = np.searchsorted(self.graph_launches, (start, end), side="left")
        return Stretch(start, end, kernels, j - i - kernels, int(graphs[1] - graphs[0]), end - start - idle, *causes)


def _steps(cuts: trace_steps.Cuts, spans: Spans, sums: _Sums) -> Steps:
    starts = spans.start[cuts.first].tolist()
    last_end = float(spans.end[cuts.first[-1] : cuts.last[-1]].max())
    stretches = [sums.stretch(start, end) for start, end in zip(starts, [*starts[1:], last_end], strict=True)]
    whole = sorted(stretches[:-1] or stretches, key=lambda each: each.span_us)
    return Steps(cuts.source, cuts.are_steps, stretches, whole[(len(whole) - 1) // 2])


def _described(profile: Profile, spans: Spans, gaps: Gaps, calls: Spans, index: int, between_steps: bool) -> Gap:
    start, end, call = float(gaps.start[index]), float(gaps.end[index]), int(gaps.call[index])
    return Gap(
        start_us=start,
        end_us=end,
        causes_us={cause: float(getattr(gaps, cause)[index]) for cause in CAUSES},
        next=profile.names[spans.name[gaps.next[index]]],
        launched_by=profile.names[calls.name[call]] if call >= 0 else "",
        host=_host_was_in(profile, int(calls.lane[call]), start, end) if call >= 0 else [],
        between_steps=between_steps,
    )


def _host_was_in(profile: Profile, thread: int, start: float, end: float) -> list[str]:
    """What the launching thread spent at least half of the time in: the innermost Python function, the innermost
    operator, the call of the runtime; those there are."""
    host = profile.host
    overlap = np.minimum(host.end, end) - np.maximum(host.start, start)
    # Some profilers put all Python functions onto a thread of their own.
    here = (host.lane == thread) | ((host.kind == PYTHON) & ~np.isin(host.lane, host.lane[host.kind == RUNTIME]))
    found = np.flatnonzero(here & (overlap >= (end - start) / 2))
    innermost: dict[int, int] = {}
    for index in found[np.argsort((host.start - host.end)[found], kind="stable")].tolist():
        innermost[int(host.kind[index])] = index
    kinds = [kind for kind in (PYTHON, OPERATOR, RUNTIME) if kind in innermost]
    kinds += [kind for kind in innermost if kind not in kinds and not kinds]
    return [profile.names[host.name[innermost[kind]]] for kind in kinds]


def _slowest(profile: Profile, spans: Spans, count: int = 5) -> list[tuple[str, int, float]]:
    names, inverse, calls = np.unique(spans.name, return_inverse=True, return_counts=True)
    took = np.bincount(inverse, weights=spans.end - spans.start)
    order = np.argsort(-took, kind="stable")[:count]
    return [(profile.names[names[i]], int(calls[i]), float(took[i])) for i in order.tolist()]
