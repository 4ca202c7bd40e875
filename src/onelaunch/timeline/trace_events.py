"""A profile in memory: what the host and the devices did, as columns of numbers.

An event of a trace takes some hundreds of bytes as JSON and some thousands as a Python dict. Here it takes about 40:
names are kept once, everything else is a number in an array. So a trace of 1 GB takes a small part of that.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelaunch.timeline.trace_reader import TraceError, TraceFile, TruncatedTraceError

# What a span is. The profiler's categories, today's and those of older versions, in lower case.
KERNEL, MEMCPY, MEMSET, RUNTIME, OPERATOR, PYTHON, ANNOTATION, OVERHEAD = range(8)
_KINDS = {
    "kernel": KERNEL,
    "gpu_memcpy": MEMCPY,
    "memcpy": MEMCPY,
    "gpu_memset": MEMSET,
    "memset": MEMSET,
    "cuda_runtime": RUNTIME,
    "cuda_driver": RUNTIME,
    "hip_runtime": RUNTIME,
    "hip_driver": RUNTIME,
    "runtime": RUNTIME,
    "driver": RUNTIME,
    "cpu_op": OPERATOR,
    "operator": OPERATOR,
    "python_function": PYTHON,
    "user_annotation": ANNOTATION,
    "overhead": OVERHEAD,
}
_DEVICE = (KERNEL, MEMCPY, MEMSET)


@dataclass(frozen=True)
class Lane:
    """A thread of the host (``process``, ``number``), or a stream of a device (``process`` is the device)."""

    process: str
    number: str


@dataclass(frozen=True)
class Spans:
    """Spans of time in the order of their start, one entry per span in each array.

    start, end: microseconds from the profile's first device activity. name, lane: indices into the profile's lists.
    kind: KERNEL, MEMCPY, ... correlation: the number that a launch and its work share; -1 where there is none.
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    name: NDArray[np.int32]
    lane: NDArray[np.int32]
    kind: NDArray[np.uint8]
    correlation: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start)

    def where(self, mask: NDArray[Any]) -> Spans:
        """The spans that ``mask`` (booleans or indices) names."""
        return Spans(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Profile:
    """One trace: the host's spans, the devices' spans, and what their numbers mean."""

    path: Path
    names: list[str]
    lanes: list[Lane]
    host: Spans
    device: Spans
    hardware: dict[str, str] = field(default_factory=dict)  # device -> the name of the GPU
    rank: int | None = None
    world_size: int | None = None
    events: int = 0


def read(path: str | Path) -> Profile:
    """Read a torch.profiler trace, plain or gzip, from CUDA or HIP.

    Raises TraceError, with one sentence, for a file that is missing, damaged, cut off, no trace, or a trace in which no
    device did anything.
    """
    file = TraceFile(path)
    host, device = _Columns(), _Columns()
    names: dict[str, int] = {}
    lanes: dict[tuple[Any, Any], int] = {}
    try:
        for event in file:
            kind = _KINDS.get(str(event.get("cat", "")).lower()) if event.get("ph") == "X" else None
            if kind is None:
                continue
            args = event.get("args")
            args = args if isinstance(args, dict) else {}
            place = event.get("pid"), event.get("tid")
            if kind in _DEVICE:
                place = args.get("device", place[0]), args.get("stream", place[1])
            try:
                start, duration = float(event["ts"]), max(float(event.get("dur", 0)), 0.0)
                correlation = int(args.get("correlation", -1))
                lane = lanes.setdefault(place, len(lanes))
            except (KeyError, TypeError, ValueError):
                continue  # a span without a time or with a place that is no place cannot be laid on a timeline
            columns = device if kind in _DEVICE else host
            name = names.setdefault(str(event.get("name", "")), len(names))
            columns.add(start, duration, name, lane, kind, correlation)
    except TruncatedTraceError as error:
        raise TruncatedTraceError(f"{error} Read so far: {_counted(host, device)}.") from error
    if not len(device):
        raise TraceError(_no_device(path, host, file))
    origin = min(device.start)
    return Profile(
        path=Path(path),
        names=list(names),
        lanes=[Lane(str(process), str(number)) for process, number in lanes],
        host=host.spans(origin),
        device=device.spans(origin),
        events=file.events,
        **_about(file.metadata),
    )


class _Columns:
    """Spans while they are read."""

    def __init__(self) -> None:
        self.start, self.duration = array("d"), array("d")
        self.name, self.lane, self.kind, self.correlation = array("i"), array("i"), array("B"), array("q")

    def __len__(self) -> int:
        return len(self.start)

    def add(self, start: float, duration: float, name: int, lane: int, kind: int, correlation: int) -> None:
        self.start.append(start)
        self.duration.append(duration)
        self.name.append(name)
        self.lane.append(lane)
        self.kind.append(kind)
        self.correlation.append(correlation)

    def spans(self, origin: float) -> Spans:
        start = np.frombuffer(self.start, np.float64) - origin
        end = start + np.frombuffer(self.duration, np.float64)
        order = np.lexsort((-end, start))  # an outer span before what it holds
        return Spans(
            start[order],
            end[order],
            np.frombuffer(self.name, np.int32)[order],
            np.frombuffer(self.lane, np.int32)[order],
            np.frombuffer(self.kind, np.uint8)[order],
            np.frombuffer(self.correlation, np.int64)[order],
        )


def _about(metadata: dict[str, Any]) -> dict[str, Any]:
    """Names of the devices, rank and world size, where the profiler wrote them."""
    hardware, ranks = {}, {}
    properties = metadata.get("deviceProperties")
    for each in properties if isinstance(properties, list) else []:
        if isinstance(each, dict) and each.get("name"):
            hardware[str(each.get("id"))] = str(each["name"])
    distributed = metadata.get("distributedInfo")
    if isinstance(distributed, dict):
        ranks = {name: distributed.get(name) for name in ("rank", "world_size")}
    return {"hardware": hardware, **{name: value for name, value in ranks.items() if isinstance(value, int)}}


def _counted(host: _Columns, device: _Columns) -> str:
    kernels = sum(kind == KERNEL for kind in device.kind)
    return f"{kernels:,} kernels and {len(host):,} spans of the host"


def _no_device(path: str | Path, host: _Columns, file: TraceFile) -> str:
    operators = sum(kind == OPERATOR for kind in host.kind)
    if operators or RUNTIME in host.kind:
        return (
            f"{path} is a profile of the CPU alone: {operators:,} operators and nothing that a device did. Profile "
            "with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] on a machine with a GPU."
        )
    return (
        f"{path} is a trace, but not of torch.profiler: among its {file.events:,} events there is no kernel and no "
        "operator."
    )
