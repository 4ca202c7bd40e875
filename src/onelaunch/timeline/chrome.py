"""Writes a timeline in the format of torch.profiler's traces, for Perfetto, chrome://tracing and ``onelaunch trace``.

What a simulation says can be looked at with the tools for real profiles, and a test can make a profile whose answer is
known. Times are microseconds, and every kernel names the call that launched it, as Kineto does it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from onelaunch.timeline.simulate import Step

HOST_PROCESS = 1000


class ChromeTrace:
    """A trace that grows span by span.

    hardware: the name of the device, as readers show it. Spans may be added in any order; a span that ends before it
    starts is refused with ValueError.
    """

    def __init__(self, hardware: str = "") -> None:
        self.hardware = hardware
        self.events: list[dict[str, Any]] = []
        self.devices: set[int] = set()
        self._correlation = 0

    def host(
        self, name: str, start_us: float, end_us: float, kind: str = "cpu_op", thread: int = 1, **args: Any
    ) -> None:
        """Something that the host did. kind: ``cpu_op``, ``python_function``, ``user_annotation`` or ``overhead``."""
        self._add(kind, name, start_us, end_us, HOST_PROCESS, thread, args)

    def call(self, name: str, start_us: float, end_us: float, thread: int = 1) -> int:
        """A call of the runtime, such as ``cudaLaunchKernel``. Returns the number by which its work refers to it."""
        self._correlation += 1
        self._add("cuda_runtime", name, start_us, end_us, HOST_PROCESS, thread, {"correlation": self._correlation})
        return self._correlation

    def work(
        self,
        name: str,
        start_us: float,
        end_us: float,
        call: int,
        device: int = 0,
        stream: int = 7,
        kind: Literal["kernel", "gpu_memcpy", "gpu_memset"] = "kernel",
    ) -> None:
        """Something that a device did. call: what ``call`` returned. kind: as the profiler calls it."""
        self.devices.add(device)
        args = {"device": device, "stream": stream, "correlation": call}
        self._add(kind, name, start_us, end_us, device, stream, args)

    def _add(
        self, kind: str, name: str, start_us: float, end_us: float, pid: int, tid: int, args: dict[str, Any]
    ) -> None:
        if not end_us >= start_us:
            raise ValueError(f"{name!r} ends at {end_us} µs, before it starts at {start_us} µs")
        self.events.append(
            {
                "ph": "X",
                "cat": kind,
                "name": name,
                "pid": pid,
                "tid": tid,
                "ts": round(start_us, 3),
                "dur": round(end_us - start_us, 3),
                "args": args,
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """The trace as it is written: header and events."""
        labels = [(HOST_PROCESS, "CPU"), *((device, f"GPU {device}") for device in sorted(self.devices))]
        about = [
            {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}}
            for pid, label in labels
        ]
        properties = [{"id": device, "name": self.hardware} for device in sorted(self.devices)]
        return {
            "schemaVersion": 1,
            "deviceProperties": properties if self.hardware else [],
            "displayTimeUnit": "ms",
            "traceEvents": [*self.events, *about],
        }

    def save(self, path: str | Path) -> Path:
        """Write the trace to ``path``, packed if its name ends in ``.gz``."""
        path = Path(path)
        text = json.dumps(self.as_dict()).encode()
        path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
        return path


def from_steps(steps: Sequence[Step], hardware: str = "") -> ChromeTrace:
    """Simulated steps one after the other, as the profiler would have written them.

    steps: such as ``[simulate(...)] * 8``. hardware: the name of the GPU.

    Each step has an annotation, ``ProfilerStep#0`` and so on. The simulator's "wait" for the device becomes a
    synchronization; its "wait" for a place in the queue is the profiler's "Command Buffer Full".
    """
    trace = ChromeTrace(hardware)
    begin = 0.0
    for number, step in enumerate(steps):
        trace.host(f"ProfilerStep#{number}", begin, begin + step.step_us, "user_annotation")
        _add_step(trace, step, begin)
        begin += step.step_us
    return trace


def _add_step(trace: ChromeTrace, step: Step, begin: float) -> None:
    last_end = step.device[-1].end_us
    calls: list[tuple[int, int]] = []  # its first kernel, and the call
    for span in step.host:
        start, end = begin + span.start_us, begin + span.end_us
        if span.name == "launch" and span.kernel is not None:
            calls.append((span.kernel, trace.call("cudaLaunchKernel", start, end)))
        elif span.name == "graph launch":
            # What lies before it was launched one by one: two graphs never follow each other.
            calls.append((calls[-1][0] + 1 if calls else 0, trace.call("cudaGraphLaunch", start, end)))
        elif span.name == "wait" and span.end_us >= last_end:
            trace.call("cudaStreamSynchronize", start, end)
        elif span.name == "wait":
            trace.host("Command Buffer Full", start, end, "overhead")
        else:
            trace.host(span.name, start, end, "python_function")
    ends = [first for first, _ in calls[1:]] + [len(step.device)]
    for (first, call), end_kernel in zip(calls, ends, strict=True):
        for kernel in step.device[first:end_kernel]:
            trace.work(kernel.name, begin + kernel.start_us, begin + kernel.end_us, call)
