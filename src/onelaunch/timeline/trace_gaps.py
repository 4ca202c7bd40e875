"""Every moment in which a device does nothing, and who is to blame for it.

Where no stream of a device runs anything there is a gap, and the work that ends it tells the cause. It had been
launched by some call of the host. Until that call had returned and the launch had arrived, the device could not have
begun: this part of the gap is *launch*, or *sync* as far as the launching thread sat in a synchronization. From then on
the work was there, and the device did not begin it: *queue*. A gap between two kernels of one graph launch is *graph*:
the host has no part in it. How long a launch takes to arrive is taken from the trace: from the kernels that an idle
device had been waiting for.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from onelaunch.timeline.trace_events import Spans

# A kernel that was launched begins some microseconds later. A longer wait has another reason: an event, another stream,
# work that the profile does not show.
LATENCY_US = 20.0


@dataclass(frozen=True)
class Gaps:
    """All gaps of one device, by time; one entry per gap in each array, times in microseconds.

    next: index of the activity that ends it. call: index of the call that launched that, -1 where the profile has none.
    launch, sync, queue, graph: the gap by cause; they add up to end - start. saving: what a graph would take from it at
    most. arrival_us: what a launch takes to arrive, the median of this trace.
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    next: NDArray[np.int64]
    call: NDArray[np.int64]
    launch: NDArray[np.float64]
    sync: NDArray[np.float64]
    queue: NDArray[np.float64]
    graph: NDArray[np.float64]
    saving: NDArray[np.float64]
    arrival_us: float = 0.0

    def __len__(self) -> int:
        return len(self.start)

    def where(self, mask: NDArray[np.bool_] | NDArray[np.int64] | slice) -> Gaps:
        """The gaps that ``mask`` names."""
        columns = [each.name for each in fields(self) if each.name != "arrival_us"]
        return replace(self, **{name: getattr(self, name)[mask] for name in columns})


def match(device: Spans, calls: Spans) -> NDArray[np.int64]:
    """For each activity of a device the index of the call that launched it, -1 where there is none.

    Both sides have the same correlation number. Where several calls have it (traces that were merged), it is the last
    one that began before the activity.
    """
    order = np.lexsort((calls.start, calls.correlation))
    numbers = calls.correlation[order]
    low = np.searchsorted(numbers, device.correlation, side="left")
    high = np.searchsorted(numbers, device.correlation, side="right")
    found = np.where((high > low) & (device.correlation >= 0), low, -1)
    for index in np.flatnonzero((high - low > 1) & (device.correlation >= 0)):
        among = calls.start[order[low[index] : high[index]]]
        found[index] = low[index] + max(int(np.searchsorted(among, device.start[index], side="right")) - 1, 0)
    return np.where(found >= 0, order[found], -1) if len(order) else found


def attribute(
    device: Spans, calls: Spans, call_of: NDArray[np.int64], is_graph: NDArray[np.bool_], syncs: Spans
) -> Gaps:
    """The gaps of one device.

    device: its activities by start. calls: what the host called. call_of: from ``match``. is_graph: for each call,
    whether it launched a graph. syncs: the synchronizations of the host.
    """
    latest = np.maximum.accumulate(device.end)
    following = np.flatnonzero(device.start[1:] > latest[:-1]) + 1
    start, end = latest[following - 1], device.start[following]
    call = call_of[following]
    known = call >= 0
    if len(calls):
        begun = np.clip(np.where(known, calls.start[call], start), start, end)
        issued = np.clip(np.where(known, calls.end[call], start), start, end)
        in_graph = known & is_graph[call] & (call_of[following - 1] == call)
        thread = np.where(known, calls.lane[call], -1)
    else:
        begun = issued = start
        in_graph, thread = np.zeros(len(start), bool), np.full(len(start), -1)
    sync = np.zeros(len(start))
    for lane in np.unique(syncs.lane).tolist():
        waited = _until(syncs.where(syncs.lane == lane))
        mine = thread == lane
        sync[mine] = waited(begun[mine]) - waited(start[mine])
    sync = np.where(in_graph, 0, sync)
    arrival_us = 0.0
    if len(calls):
        waited_for = known & ~in_graph & (calls.end[call] > start) & (calls.end[call] < end)
        delays = (end - calls.end[call])[waited_for & (end - calls.end[call] <= LATENCY_US)]
        arrival_us = float(np.median(delays)) if len(delays) else 0.0
        issued = np.clip(np.where(known, calls.end[call] + arrival_us, start), start, end)
    launch = np.where(in_graph, 0, issued - start - sync)
    queue = np.where(in_graph, 0, end - issued)
    graph = np.where(in_graph, end - start, 0)
    # Without a single launch in the trace no gap has a cause, and the bound is all of it.
    saving = np.where(in_graph, 0, launch + np.minimum(queue, LATENCY_US)) if len(calls) else end - start
    return Gaps(start, end, following, call, launch, sync, queue, graph, saving, arrival_us)


class _until:
    """A function of time: how long, until then, at least one of the spans lasted."""

    def __init__(self, spans: Spans) -> None:
        latest = np.maximum.accumulate(spans.end)
        new = np.concatenate(([True], spans.start[1:] > latest[:-1]))
        self.start = spans.start[new]
        self.end = np.concatenate((latest[:-1][new[1:]], latest[-1:]))
        self.before = np.concatenate(([0.0], np.cumsum(self.end - self.start)))

    def __call__(self, time: NDArray[np.float64]) -> NDArray[np.float64]:
        index = np.searchsorted(self.start, time, side="right") - 1
        inside = np.maximum(index, 0)
        lasted = np.minimum(time, self.end[inside]) - self.start[inside]
        return np.where(index >= 0, self.before[inside] + lasted, 0.0)
