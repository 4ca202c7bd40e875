"""A trace as a page: host, device and waits as lanes, to zoom into, in one file that needs no network.

The page holds about ``BUDGET`` spans at most. Where a trace has more, the step of median time is kept whole as far as
it fits, long spans are kept everywhere, and neighbours that are too short to be seen become one; the page says so.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelaunch.timeline.trace import CAUSES, GRAPH_LAUNCH, LAUNCH, SYNCHRONIZE, Device, Stretch, Trace
from onelaunch.timeline.trace_events import ANNOTATION, KERNEL, OPERATOR, RUNTIME, Spans
from onelaunch.timeline.trace_report import as_text, ms, plural, saving, short, verdict

BUDGET = 24_000  # spans in one page, about 1 MB
BUCKETS = 2_000  # what is shorter than this part of the whole, and has a neighbour as near, may be merged
DEVICES = 4
STREAMS = 8  # lanes for streams; the rest share the last one
GENERATOR = '<meta name="generator" content="onelaunch trace">'

BLUE, SKY, ORANGE, GREEN, PURPLE, GREY = "blue", "sky", "orange", "green", "purple", "grey"
CAUSE_COLORS = {"launch": BLUE, "sync": GREY, "queue": PURPLE, "graph": GREEN}
KEYS = [
    (BLUE, "launch, or a wait for one"),
    (SKY, "operator"),
    (ORANGE, "kernel"),
    (GREEN, "graph launch, and what runs in it"),
    (PURPLE, "copy; a wait in the queue"),
    (GREY, "synchronization, annotation, other calls"),
]


def as_html(trace: Trace) -> str:
    """The page. Its sentences are about the device with the most kernels; ``DEVICES`` of them are drawn."""
    device = trace.devices[0]
    page = _Page(trace, trace.devices[:DEVICES])
    steps = device.steps
    stretch = steps.median if steps is not None else device.whole
    what = "a step" if steps is not None and steps.are_steps else "a repetition" if steps is not None else "the profile"
    focus = "One step" if steps is not None and len(steps.all) > 1 and steps.are_steps else "Busiest part"
    about = [device.hardware, f"GPU {device.number}", plural(device.whole.kernels, "kernel"), ms(device.whole.span_us)]
    if steps is not None and len(steps.all) > 1:
        about.append(
            f"{len(steps.all):,} times {'a step' if steps.are_steps else 'the same kernels'}, by {steps.source}"
        )
    if len(trace.devices) > DEVICES:
        others = ", ".join(each.number for each in trace.devices[DEVICES:])
        about.append(f"not drawn, and in the text below: GPU {others}")
    fields = {
        "TITLE": html.escape(trace.path.name),
        "ABOUT": html.escape(", ".join(filter(None, about))),
        "VERDICT": html.escape(verdict(stretch, device.attributed)),
        "SAVING": html.escape(saving(stretch, what)),
        "FOCUS": focus,
        "FOCUS_LOWER": focus.lower(),
        "THINNED": html.escape(page.thinned()),
        "WAITS": _waits(device),
        "REPORT": html.escape(as_text(trace)),
        "DATA": page.as_json(),
    }
    text = resources.files("onelaunch.timeline").joinpath("timeline.html").read_text(encoding="utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda match: fields[match[1]], text)


def _waits(device: Device) -> str:
    rows = []
    for number, gap in enumerate(device.largest):
        host = " › ".join(short(name, 60) for name in gap.host) or ("between steps" if gap.between_steps else "")
        rows.append(
            f'<tr><td><button data-wait="{number}" aria-label="Show wait {number + 1}">{number + 1}</button></td>'
            f'<td class="number">{ms(gap.start_us)}</td><td class="number">{ms(gap.end_us - gap.start_us)}</td>'
            f"<td>{gap.cause}</td><td><code>{html.escape(short(gap.next, 60))}</code></td>"
            f"<td><code>{html.escape(host)}</code></td></tr>"
        )
    if not rows:
        return "<p>The device never waited.</p>"
    head = '<th>show</th><th class="number">at</th><th class="number">for</th><th>cause</th><th>before</th>'
    return f"<table><thead><tr>{head}<th>the host was in</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"


class _Page:
    """The lanes of one page, and the names that their spans refer to."""

    def __init__(self, trace: Trace, devices: Sequence[Device]) -> None:
        self.trace, self.main = trace, devices[0]
        self.names: dict[str, int] = {}
        self.lanes: list[dict[str, Any]] = []
        self.kept = self.merged = 0
        self.per_lane = BUDGET // sum(4 + min(device.streams, STREAMS) for device in devices)
        self.focus = _busiest_part(
            self.main, self.main.steps.median if self.main.steps is not None else self.main.whole
        )
        call_lanes: dict[int, int] = {}
        for device in devices:
            thread = self._thread(device)
            if thread is not None and thread not in call_lanes:
                call_lanes[thread] = self._host(thread, f" for GPU {device.number}" if len(devices) > 1 else "")
            self._streams(device, -1 if thread is None else call_lanes[thread])
            self._gaps(device)

    def _thread(self, device: Device) -> int | None:
        """The thread that launched most of the device's work."""
        known = device.call_of[device.call_of >= 0]
        threads, counts = np.unique(self.trace.calls.lane[known], return_counts=True)
        return int(threads[counts.argmax()]) if len(threads) else None

    def _host(self, thread: int, whose: str) -> int:
        """Lanes of a thread. Returns the number of the one with its calls."""
        host = self.trace.profile.host
        here = host.where(host.lane == thread)
        self._lane(f"host{whose}: annotations", here.where(here.kind == ANNOTATION), lambda name: GREY)
        operators = here.where(here.kind == OPERATOR)
        self._lane(f"host{whose}: operators", operators.where(_outermost(operators)), lambda name: SKY)
        self._lane(f"host{whose}: calls of the runtime", here.where(here.kind == RUNTIME), _color_of_call)
        return len(self.lanes) - 1

    def _streams(self, device: Device, call_lane: int) -> None:
        calls, call_of, profile = self.trace.calls, device.call_of, self.trace.profile
        known = call_of >= 0
        streams, counts = np.unique(device.spans.lane, return_counts=True)
        order = streams[np.argsort(-counts, kind="stable")]
        launched = np.where(known, calls.start[call_of], np.nan) if len(calls) else np.full(len(call_of), np.nan)
        is_graph = np.array([bool(GRAPH_LAUNCH.search(name)) for name in profile.names], bool)
        in_graph = known & is_graph[calls.name[call_of]] if len(calls) else known
        color = np.where(device.spans.kind != KERNEL, PURPLE, np.where(in_graph, GREEN, ORANGE))
        for number, stream in enumerate(order[:STREAMS].tolist()):
            last = number == STREAMS - 1 and len(order) > STREAMS
            mine = np.isin(device.spans.lane, order[number:]) if last else device.spans.lane == stream
            name = f"{len(order) - number} more streams" if last else f"stream {profile.lanes[stream].number}"
            self._add(f"GPU {device.number}: {name}", device.spans.where(mine), color[mine], launched[mine])
            self.lanes[-1]["calls"] = call_lane

    def _gaps(self, device: Device) -> None:
        gaps = device.gaps
        causes = np.stack([getattr(gaps, cause) for cause in CAUSES])
        largest = causes.argmax(axis=0) if len(gaps) else np.zeros(0, np.int64)
        color = np.array([CAUSE_COLORS[cause] for cause in CAUSES])[largest]
        numbers = np.array([self._name(cause) for cause in CAUSES])
        empty = np.full(len(gaps), -1)
        spans = Spans(gaps.start, gaps.end, numbers[largest], empty, np.zeros(len(gaps), np.uint8), empty)
        self._add(f"GPU {device.number}: waits, by cause", spans, color, np.full(len(gaps), np.nan), named=True)
        self.lanes[-1]["waits"] = True

    def _lane(self, name: str, spans: Spans, color_of: Any) -> None:
        if len(spans):
            colors = {number: color_of(self.trace.profile.names[number]) for number in np.unique(spans.name).tolist()}
            color = np.array([colors[number] for number in spans.name.tolist()])
            self._add(name, spans, color, np.full(len(spans), np.nan))

    def _add(
        self, name: str, spans: Spans, color: NDArray[Any], launched: NDArray[np.float64], named: bool = False
    ) -> None:
        """A lane. named: the names are those of the page already."""
        rows: list[list[Any]] = []
        for first, last in _groups(spans, self.focus, self.main.whole.span_us, self.per_lane):
            count = last - first
            start = float(spans.start[first])
            number = int(spans.name[first]) if named else self._name(self.trace.profile.names[spans.name[first]])
            call = None if count > 1 or np.isnan(launched[first]) else round(float(launched[first]), 2)
            end = float(spans.end[first:last].max())
            rows.append([round(start, 2), round(end - start, 2), number, str(color[first]), count, call])
            self.kept += 1
            self.merged += count if count > 1 else 0
        self.lanes.append({"name": name, "spans": rows, "longest": max((row[1] for row in rows), default=0)})

    def _name(self, name: str) -> int:
        return self.names.setdefault(short(name, 120), len(self.names))

    def thinned(self) -> str:
        """What was left out, in a sentence."""
        if not self.merged:
            return "Every span of these lanes is here."
        return (
            f"To keep the page small, {self.merged:,} short spans outside of the step in the middle are drawn "
            "together; their numbers in the text count every one."
        )

    def as_json(self) -> str:
        whole, (start, end) = self.main.whole, self.focus
        starts = [row[0] for lane in self.lanes for row in lane["spans"][:1]]
        ends = [row[0] + row[1] for lane in self.lanes for row in lane["spans"][-1:] if "calls" in lane]
        data = {
            "lanes": self.lanes,
            "names": list(self.names),
            "keys": KEYS,
            "span": [round(min([whole.start_us, *starts]), 2), round(max([whole.end_us, *ends]), 2)],
            "focus": [round(start - 0.02 * (end - start), 2), round(end + 0.02 * (end - start), 2)],
            "waits": [[round(gap.start_us, 2), round(gap.end_us, 2)] for gap in self.main.largest],
        }
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _busiest_part(device: Device, stretch: Stretch) -> tuple[float, float]:
    """The stretch, or where long waits take most of it, what is between two of them."""
    start, end = stretch.start_us, stretch.end_us
    gaps = device.gaps.where((device.gaps.start >= start) & (device.gaps.end <= end))
    if stretch.active_us > 0.5 * stretch.span_us:
        return start, end
    long = gaps.where(gaps.end - gaps.start > 0.05 * stretch.span_us)
    begins, ends = [start, *long.end.tolist()], [*long.start.tolist(), end]
    return max(zip(begins, ends, strict=True), key=lambda part: part[1] - part[0])


def _color_of_call(name: str) -> str:
    if GRAPH_LAUNCH.search(name):
        return GREEN
    return GREY if SYNCHRONIZE.search(name) or not LAUNCH.search(name) else BLUE


def _outermost(spans: Spans) -> NDArray[np.bool_]:
    """Those that lie in no other."""
    if not len(spans):
        return np.zeros(0, bool)
    latest = np.maximum.accumulate(spans.end)
    return np.concatenate(([True], spans.start[1:] >= latest[:-1]))


def _groups(spans: Spans, focus: tuple[float, float], whole_us: float, budget: int) -> list[tuple[int, int]]:
    """Which spans stand alone and which are drawn together: ranges [first, last) in the order of time."""
    count = len(spans)
    if count <= budget:
        return [(index, index + 1) for index in range(count)]
    inside = (spans.end >= focus[0]) & (spans.start <= focus[1])
    inside &= np.cumsum(inside) <= budget // 2
    bucket_us = whole_us / BUCKETS
    alone = inside | (spans.end - spans.start > bucket_us)
    bucket = np.floor(spans.start / bucket_us)
    new = np.concatenate(([True], (bucket[1:] != bucket[:-1]) | alone[1:] | alone[:-1]))
    first = np.flatnonzero(new)
    return list(zip(first.tolist(), [*first[1:].tolist(), count], strict=True))


def write(trace: Trace, path: Path) -> Path:
    """Write the page to ``path``. Raises OSError where that cannot be done."""
    path.write_text(as_html(trace), encoding="utf-8")
    return path


def default_path(trace: Path) -> Path:
    """``decode.html`` in the current folder for ``anywhere/decode.json.gz``."""
    name = trace.name.removesuffix(".gz").removesuffix(".json").removesuffix(".pt.trace")
    return Path(f"{name or 'trace'}.html")


def is_ours(path: Path) -> bool:
    """Whether a file that is there was written by this module, so that it may be written again."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return GENERATOR in file.read(2000)
