"""A step of a profile as the simulator's ``Step``: a real step and a simulated one are drawn and compared alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onelaunch.timeline.simulate import Mode, Span, Step
from onelaunch.timeline.trace import GRAPH_LAUNCH, LAUNCH, SYNCHRONIZE, Device, Stretch, Trace
from onelaunch.timeline.trace_events import RUNTIME


def as_step(trace: Trace, device: Device | None = None, stretch: Stretch | None = None) -> Step:
    """One step of a trace. Times count from the host's first launch of it.

    device: the one with the most kernels if None. stretch: which step; the one of median time if None, or the whole
    trace where it has no steps. Streams share one lane: where they overlap, only what sticks out is kept. Between its
    calls the host is said to be at "work". Raises ValueError where the trace has no launches.
    """
    device = device or trace.devices[0]
    stretch = stretch or (device.steps.median if device.steps is not None else device.whole)
    inside = (device.spans.start >= stretch.start_us) & (device.spans.start < stretch.end_us)
    spans, call_of = device.spans.where(inside), device.call_of[inside]
    known = call_of[call_of >= 0]
    if not len(known):
        raise ValueError(f"{trace.path} has no launches, so there is nothing to lay beside the device's work.")
    origin = float(trace.calls.start[known].min())
    names = trace.profile.names
    kernels: list[Span] = []
    number_of_call: dict[int, int] = {}
    free = -np.inf
    for index, (start, end) in enumerate(zip(spans.start.tolist(), spans.end.tolist(), strict=True)):
        if end > free:
            number_of_call.setdefault(int(call_of[index]), len(kernels))
            kernels.append(Span(names[spans.name[index]], max(start, free) - origin, end - origin, len(kernels)))
            free = end
    host = _host(trace, int(trace.calls.lane[known[0]]), origin, origin + stretch.span_us, number_of_call)
    return Step(_mode(stretch, _share_in_graphs(trace, known)), host, tuple(kernels), stretch.span_us)


def _share_in_graphs(trace: Trace, calls: NDArray[np.int64]) -> float:
    names = trace.profile.names
    return float(np.mean([bool(GRAPH_LAUNCH.search(names[name])) for name in trace.calls.name[calls].tolist()]))


def _mode(stretch: Stretch, share_in_graphs: float) -> Mode:
    if stretch.graph_launches == 0:
        return "eager"
    return "graph" if stretch.graph_launches == 1 and share_in_graphs > 0.5 else "piecewise"


def _host(trace: Trace, thread: int, start: float, end: float, number_of_call: dict[int, int]) -> tuple[Span, ...]:
    """What the launching thread called, with its work between the calls."""
    profile = trace.profile
    numbers = {float(trace.calls.start[call]): number for call, number in number_of_call.items() if call >= 0}
    runtime = profile.host.where((profile.host.kind == RUNTIME) & (profile.host.lane == thread))
    runtime = runtime.where((runtime.start >= start) & (runtime.start < end))
    spans: list[Span] = []
    now = start
    for begin, finish, name in zip(runtime.start.tolist(), runtime.end.tolist(), runtime.name.tolist(), strict=True):
        called = profile.names[name]
        if GRAPH_LAUNCH.search(called):
            what, kernel = "graph launch", None
        elif LAUNCH.search(called) or begin in numbers:
            what, kernel = "launch", numbers.get(begin)
        elif SYNCHRONIZE.search(called):
            what, kernel = "wait", None
        else:
            continue
        if begin > now:
            spans.append(Span("work", now - start, begin - start))
        finish = min(finish, end)
        spans.append(Span(what, max(begin, now) - start, max(finish, now) - start, kernel))
        now = max(now, finish)
    # Behind the last call of a profile nothing says whether the host still works.
    goes_on = bool((profile.host.start[profile.host.kind == RUNTIME] >= end).any())
    if now < end and goes_on:
        spans.append(Span("work", now - start, end - start))
    return tuple(spans)
