"""What graphs gain: the speed-up against the batch, and after how many steps a capture has paid for itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from onelaunch.viz.canvas import BLUE, FOREGROUND, GREEN, GREY, ORANGE, PURPLE, Canvas, join, number, text_width
from onelaunch.viz.figure import Figure

COLORS = (BLUE, ORANGE, GREEN, PURPLE, GREY)
LEFT, LINE = 40.0, 18.0


def speedups(
    curves: Mapping[str, Mapping[int, float]],
    bands: Mapping[str, Mapping[int, tuple[float, float]]] | None = None,
    caption: str | None = None,
) -> Figure:
    """How many times as fast a step is with a graph, against the batch.

    curves: name -> batch size -> speed-up. bands: name of a curve -> batch size -> from, to: somebody else's figures
    for it, drawn as bars behind it, in its colour.
    Raises ValueError for no curve, for more than there are colours, and for a band whose curve is missing.
    """
    bands = bands or {}
    if not curves or not all(curves.values()) or len(curves) > len(COLORS) or not set(bands) <= set(curves):
        raise ValueError(
            f"there must be 1 to {len(COLORS)} curves with points, and a curve for each band; "
            f"found {list(curves)} and {list(bands)}"
        )
    batches = sorted({size for points in [*curves.values(), *bands.values()] for size in points})
    values = [value for points in curves.values() for value in points.values()]
    values += [edge for band in bands.values() for pair in band.values() for edge in pair]
    step = next(s for s in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 1e9) if (max(values) - 1) / s <= 6)
    lowest = 1 - step * math.ceil(max(0.0, 1 - min(values)) / step - 1e-9)
    highest = 1 + step * max(1, math.ceil((max(values) - 1) / step - 1e-9))
    plot = 200.0
    canvas = Canvas(height=plot + 38 + LINE * len(curves))
    low, high = math.log2(batches[0]), math.log2(batches[-1])
    unit_x, unit_y = (canvas.width - LEFT - 24) / max(high - low, 1), (plot - 22) / (highest - lowest)

    def at(batch: float, value: float) -> tuple[float, float]:
        return LEFT + 10 + (math.log2(batch) - low) * unit_x, plot - (value - lowest) * unit_y

    for tick in range(round((highest - lowest) / step) + 1):
        value = lowest + tick * step
        y = at(batches[0], value)[1]
        canvas.line([(LEFT, y), (canvas.width, y)], GREY, width=0.9 if abs(value - 1) < 1e-9 else 0.3)
        canvas.text(LEFT - 6, y, f"{value:.4g}", "right", faint=True)
    canvas.text(LEFT, 8, "times as fast as eager", faint=True)
    free = 0.0
    for batch in batches:
        x, label = at(batch, lowest)[0], str(batch)
        if x - text_width(label) / 2 > free:
            canvas.text(x, plot + 12, label, "center", faint=True)
            free = x + text_width(label) / 2 + 3
    canvas.text(canvas.width, plot + 27, "requests in the batch", "right", faint=True)
    for index, (name, points) in enumerate(curves.items()):
        color = COLORS[index]
        for batch, (least, most) in bands.get(name, {}).items():
            (x, bottom), (_, top) = at(batch, least), at(batch, most)
            beside = 6.5 * (
                list(bands).index(name) - (len(bands) - 1) / 2
            )  # so that two at one batch can be told apart
            canvas.box(x + beside - 5.5, top, 11, max(bottom - top, 2), color, fill=0.25, edge=0.8)
        canvas.line([at(batch, points[batch]) for batch in sorted(points)], color, width=1.6)
        for batch, value in points.items():
            x, y = at(batch, value)
            canvas.box(x - 2.5, y - 2.5, 5, 5, color, fill=1, edge=0, radius=2.5)
        y = plot + 38 + LINE * (index + 0.5)
        canvas.line([(0, y), (18, y)], color, width=2.2)
        canvas.text(24, y, name)
    said = [
        f"{name}: " + ", ".join(f"{value:.2f} at batch {batch}" for batch, value in sorted(points.items()))
        for name, points in curves.items()
    ]
    quoted = [
        f"{name}: " + ", ".join(f"{a:.2f} to {b:.2f} at batch {batch}" for batch, (a, b) in sorted(band.items()))
        for name, band in bands.items()
    ]
    alt = f"Curves of how many times as fast as eager a step with a graph is. {'; '.join(said)}."
    alt += f" Bars behind them: {'; '.join(quoted)}." if quoted else ""
    return Figure(canvas.drawing, alt, caption)


@dataclass(frozen=True)
class Capture:
    """A capture and what it brings. seconds: what it took. saved_ms: what each replayed step then saves."""

    seconds: float
    saved_ms: float

    @property
    def steps(self) -> float:
        """Replays after which the capture has paid for itself; infinity where a replay saves nothing."""
        return 1e3 * self.seconds / self.saved_ms if self.saved_ms > 0 else math.inf


def break_even(captures: Mapping[str, Capture], caption: str | None = None) -> Figure:
    """When a capture has paid for itself: a level line for what it took, a rising one for what the steps have saved.

    Both axes go by powers of ten. Raises ValueError for nothing to draw and for a time that is not above zero.
    """
    if not captures or len(captures) > len(COLORS):
        raise ValueError(f"there must be 1 to {len(COLORS)} captures, found {len(captures)}")
    if any(each.seconds <= 0 or each.saved_ms <= 0 for each in captures.values()):
        raise ValueError(f"a capture takes time, and its replays must save some, found {dict(captures)}")
    left_power = math.floor(math.log10(min(each.steps for each in captures.values())) - 0.7)
    right_power = math.ceil(math.log10(max(each.steps for each in captures.values())) + 0.5)
    bottom = math.floor(math.log10(min(each.seconds for each in captures.values())) - 0.7)
    top = math.ceil(math.log10(max(each.seconds for each in captures.values())) + 0.3)
    plot, left = 200.0, 58.0
    canvas = Canvas(height=plot + 38 + 2 * LINE * len(captures))
    unit_x, unit_y = (canvas.width - left - 12) / (right_power - left_power), (plot - 22) / (top - bottom)

    def at(steps: float, seconds: float) -> tuple[float, float]:
        return left + (math.log10(steps) - left_power) * unit_x, plot - (math.log10(seconds) - bottom) * unit_y

    for power in range(bottom, top + 1):
        y = at(10.0**left_power, 10.0**power)[1]
        canvas.line([(left, y), (canvas.width - 12, y)], GREY, width=0.3)
        canvas.text(left - 6, y, _power(power, "s"), "right", faint=True)
    for power in range(left_power, right_power + 1):
        x = at(10.0**power, 10.0**bottom)[0]
        canvas.line([(x, plot), (x, plot + 4)], GREY)
        label = f"{10**power:,}" if power < 6 else f"{10 ** (power - 6):,} million"
        if power == right_power:
            canvas.text(canvas.width, plot + 12, label, "right", faint=True)
        elif power >= 0 and x + text_width(label) / 2 < canvas.width - text_width("1 million") - 8:
            canvas.text(x, plot + 12, label, "center", faint=True)
    canvas.text(left, 8, "seconds", faint=True)
    canvas.text(canvas.width, plot + 27, "replayed steps", "right", faint=True)
    for index, (name, each) in enumerate(captures.items()):
        color = COLORS[index]
        ends = (10.0**left_power, 10.0**right_power)
        canvas.line([at(ends[0], each.seconds), at(ends[1], each.seconds)], color, width=1.2, dashed=True)
        low = max(ends[0], 10.0**bottom / each.saved_ms * 1e3)
        high = min(ends[1], 10.0**top / each.saved_ms * 1e3)
        canvas.line([at(n, n * each.saved_ms / 1e3) for n in (low, high)], color, width=1.6)
        x, y = at(each.steps, each.seconds)
        canvas.box(x - 3.5, y - 3.5, 7, 7, color, fill=1, edge=0, radius=3.5)
        y = plot + 38 + 2 * LINE * index
        canvas.line([(0, y + LINE / 2), (18, y + LINE / 2)], color, width=2.2)
        canvas.text(24, y + LINE / 2, name)
        canvas.text(24, y + 1.4 * LINE, f"pays after {_steps(each.steps)}", faint=True)
    canvas.line([(left, plot), (canvas.width - 12, plot)], FOREGROUND)
    said = [
        f"{name}: captured in {number(each.seconds)} s, saves {number(each.saved_ms)} ms a step, pays after "
        f"{_steps(each.steps)}"
        for name, each in captures.items()
    ]
    return Figure(
        canvas.drawing,
        f"When a capture has paid for itself. {join(said)}.",
        caption
        or "Dashed: what the capture took. Rising: what the replayed steps have saved. They cross where it has paid.",
    )


def _steps(steps: float) -> str:
    """Steps as a reader says them: three digits of them matter at most."""
    return f"{float(f'{steps:.2g}'):,.0f} steps" if steps >= 100 else f"{max(1, math.ceil(steps))} steps"


def _power(power: int, unit: str) -> str:
    return f"{10**power:,} {unit}" if power >= 0 else f"{10.0**power:g} {unit}"
