"""Bars: how many kernels of which kind a step has, how long a step takes, and how much faster it can be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from onelaunch.machine import in_words
from onelaunch.viz.canvas import BLUE, GREEN, GREY, ORANGE, PURPLE, Canvas, join, number, plural, text_width
from onelaunch.viz.figure import Figure


def kernel_counts(counts: Mapping[str, int], caption: str | None = None) -> Figure:
    """One bar for each kind of kernel in a step, the most frequent first.

    counts: kind (an operator, a part of the layer) -> how many.
    """
    if not counts:
        raise ValueError("there is nothing to draw: counts is empty")
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    total = sum(counts.values())
    alt = f"Bars of kernel counts in one step: {join([f'{name} {count}' for name, count in ordered])}."
    drawing = _bars([(name, count, BLUE) for name, count in ordered]).drawing
    return Figure(drawing, alt, caption or f"{total:,} kernels in one step.")


def time_bars(benchmark: Mapping[str, Any], threads: int = 1) -> Figure:
    """Milliseconds of a decode step: this engine, Hugging Face, and the linear layers alone.

    benchmark: what ``benchmarks/generate.py`` saves: ``rows`` with ``threads``, ``batch``, ``onelaunch_ms``,
    ``huggingface_ms`` and ``linear_floor_ms``, and ``hardware``, ``versions``, ``date``, which go into the caption.
    """
    rows = [row for row in benchmark["rows"] if row["threads"] == threads]
    if not rows:
        measured = sorted({row["threads"] for row in benchmark["rows"]})
        raise ValueError(f"nothing was measured with {threads} threads; there is {measured}")
    kinds = (
        ("onelaunch_ms", "One Launch", BLUE),
        ("huggingface_ms", "Hugging Face", ORANGE),
        ("linear_floor_ms", "linear layers alone", GREY),
    )
    groups = [(f"batch {row['batch']}", [(name, row[key], color) for key, name, color in kinds]) for row in rows]
    said = "; ".join(
        f"batch {row['batch']}: " + ", ".join(f"{name} {number(row[key])} ms" for key, name, _ in kinds) for row in rows
    )
    alt = f"Bars of milliseconds for one decode step. {said}."
    caption = f"Milliseconds for one decode step, {plural(threads, 'thread')}. Measured on {in_words(benchmark)}."
    return Figure(_grouped_bars(groups, unit=" ms").drawing, alt, caption)


_WAYS = {
    "rerun": "rerun",
    "python": "tape, Python",
    "script": "tape, script",
    "native": "tape, C++",
    "trace": "jit.trace",
    "inductor": "torch.compile",
}


def replay_speeds(
    measurement: Mapping[str, Any], shapes: Sequence[str] = ("16/8", "64/8", "128/8", "1024/8"), threads: int = 1
) -> Figure:
    """How many times as fast as eager each way to run a decode step is, by the size of the model.

    measurement: what ``benchmarks/replay.py`` saves. shapes: which of its shapes, as hidden size/batch size. The last
    bar of a group is the limit: the shortest times of the recorded kernels, each alone, added up.
    Raises ValueError for a shape that was not measured.
    """
    rows = {
        f"{row['hidden']}/{row['batch']}": row
        for row in measurement["shapes"]
        if row["threads"] == threads and row["attention"] == "explicit"
    }
    missing = [shape for shape in shapes if shape not in rows]
    if missing or not shapes:
        raise ValueError(f"no {join(missing) or 'shape'} was measured with {threads} threads; there is {sorted(rows)}")
    colors = dict(zip(_WAYS, (GREY, GREEN, GREEN, GREEN, ORANGE, ORANGE), strict=True))
    groups = []
    for shape in shapes:
        row = rows[shape]
        eager = row["ms"]["eager"]
        bars = [(name, eager / row["ms"][way], colors[way]) for way, name in _WAYS.items() if way in row["ms"]]
        title = f"hidden {row['hidden']}, batch {row['batch']}"
        groups.append((title, [*bars, ("the limit", eager / row["limit_ms"], BLUE)]))
    said = "; ".join(
        f"{title}: " + ", ".join(f"{name} {number(value)}" for name, value, _ in group) for title, group in groups
    )
    caption = (
        f"Times as fast as eager: one decode step of {measurement['layers']} layers, {plural(threads, 'thread')}, "
        "medians. The limit: the shortest time of each recorded kernel, alone and with its data in the cache, added "
        f"up. Measured on {in_words(measurement)}."
    )
    drawing = _grouped_bars(groups, unit="×").drawing
    return Figure(drawing, f"Bars of how many times as fast as eager a decode step runs. {said}.", caption)


def bars(
    groups: Mapping[str, Mapping[str, float]],
    what: str,
    unit: str = "",
    caption: str | None = None,
    colors: Mapping[str, str] | None = None,
) -> Figure:
    """Groups of bars, such as one group for each model and one bar for each way to run it.

    groups: name of the group -> name of the bar -> value. A name has the same colour in all groups. what: what the
    values are, for the alt text and, with unit, for the caption. colors: name of a bar -> its colour, where names have
    one that says something; the rest is grey then.
    """
    if not groups or not all(groups.values()):
        raise ValueError("there is nothing to draw: every group needs a bar")
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    if colors is None:
        colors = dict(zip(names, cycle((BLUE, ORANGE, GREEN, PURPLE, GREY)), strict=False))
    drawing = _grouped_bars(
        [
            (title, [(name, value, colors.get(name, GREY)) for name, value in group.items()])
            for title, group in groups.items()
        ],
        unit=unit and f" {unit}",
    ).drawing
    said = "; ".join(
        f"{title}: " + ", ".join(f"{name} {number(value)}" for name, value in group.items())
        for title, group in groups.items()
    )
    in_unit = f" in {unit}" if unit else ""
    return Figure(drawing, f"Bars of {what}{in_unit}. {said}.", caption or f"{what[0].upper()}{what[1:]}{in_unit}.")


def _bars(bars: Sequence[tuple[str, float, str]]) -> Canvas:
    return _grouped_bars([("", list(bars))])


def _grouped_bars(groups: Sequence[tuple[str, list[tuple[str, float, str]]]], unit: str = "") -> Canvas:
    """Horizontal bars from zero, each with its name on the left and its value on the right."""
    row, bar, heading, gap = 20.0, 13.0, 20.0, 8.0
    bars = [each for _, group in groups for each in group]
    left = max(text_width(name) for name, _, _ in bars) + 8
    height = sum(row * len(group) + (heading if title else 0) for title, group in groups) + gap * (len(groups) - 1)
    canvas = Canvas(height=height)
    right = max(text_width(number(value) + unit) for _, value, _ in bars) + 8
    scale = (canvas.width - left - right) / max(max(value for _, value, _ in bars), 1e-9)
    y = 0.0
    for title, group in groups:
        if title:
            canvas.text(0, y + heading / 2, title, bold=True)
            y += heading
        first = y
        for name, value, color in group:
            canvas.text(left - 8, y + row / 2, name, "right")
            canvas.box(left, y + (row - bar) / 2, max(value * scale, 1), bar, color, fill=1, edge=0, radius=0)
            canvas.text(left + value * scale + 5, y + row / 2, number(value) + unit)
            y += row
        canvas.line([(left, first), (left, y)], GREY)
        y += gap
    return canvas
