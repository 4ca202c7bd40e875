"""What asking for an operation costs: times on their line, which begins above zero, and the parts of that beginning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from onelaunch.viz.canvas import BLUE, FOREGROUND, GREEN, GREY, ORANGE, PURPLE, Canvas, number, text_width
from onelaunch.viz.figure import Figure

if TYPE_CHECKING:
    from onelaunch.timeline.costs import Costs
    from onelaunch.timeline.fit import Line

PARTS = {"the addition": ORANGE, "dispatch": GREEN, "Python, and memory": BLUE, "module": PURPLE}


def cost_line(line: Line, what: str, measured_on: str = "") -> Figure:
    """Times against size, the line through them, and where it begins: the cost of asking, with its interval.

    what: what was timed. measured_on: hardware, versions and date, for the caption.
    """
    if not line.points or line.start.us <= 0:
        raise ValueError(f"a line that begins above zero is needed; found {line.start} and {len(line.points)} points")
    unit = f"{line.unit}s"
    left, plot, right = 34.0, 170.0, 10.0
    canvas = Canvas(height=plot + 36)
    last, top = max(x for x, _ in line.points), max(us for _, us in line.points) * 1.12
    width = canvas.width - left - right

    def at(x: float, us: float) -> tuple[float, float]:
        return left + width * x / last, plot - (plot - 10) * us / top

    canvas.line([at(0, top), at(0, 0), at(last, 0)], GREY)
    for tick in _ticks(top):
        canvas.text(left - 5, at(0, tick)[1], number(tick), "right", faint=True)
    for tick in _ticks(last):
        canvas.text(at(tick, 0)[0], plot + 12, number(tick), "center", faint=True)
    canvas.text(left + 6, 6, "µs", faint=True)
    canvas.text(canvas.width, plot + 28, unit, "right", faint=True)
    canvas.area([at(0, 0), at(last, 0), at(last, line.start.us), at(0, line.start.us)], BLUE, fill=0.12)
    canvas.line([at(0, line.start.us), at(last, line.at(last))], BLUE, width=1.6)
    for x, us in line.points:
        place = at(x, us)
        canvas.box(place[0] - 3, place[1] - 3, 6, 6, ORANGE, fill=1, edge=0, radius=3)
    (x, low), (_, high) = at(0, line.start.low_us), at(0, line.start.high_us)
    canvas.line([(x, low), (x, high)], FOREGROUND, width=2.4)
    for end in (low, high):
        canvas.line([(x - 4, end), (x + 4, end)], FOREGROUND, width=1.2)
    canvas.text(at(last, 0)[0], (at(0, 0)[1] + at(0, line.start.us)[1]) / 2, "what asking costs", "right")
    begin, slope = number(line.start.us), f"{line.each.us * 1000:.3g}"
    interval = f"{line.start.low_us:.3g} to {line.start.high_us:.3g}"
    alt = (
        f"Times of {what} against the number of {unit}, and a line through them. It begins at {begin} µs for none "
        f"(95% interval {interval}) and rises by {slope} ns for each: "
        + ", ".join(f"{number(x)} {unit} {number(us)} µs" for x, us in line.points)
        + "."
    )
    caption = (
        f"{what}: {begin} µs before the first {line.unit} (95% interval {interval}), then {slope} ns for each. The "
        f"points lie within {line.misfit:.0%} of the line."
    )
    return Figure(canvas.drawing, alt, f"{caption} Measured on {measured_on}." if measured_on else caption)


def host_time(costs: Costs) -> Figure:
    """Where the time of one call of a module goes, from the outside in: each part a bar that begins where the part
    inside it ends."""
    whole = sum(part.us for part in costs.parts.values())
    row, bar, gap = 22.0, 14.0, 8.0
    names = ["in all", *list(costs.parts)[::-1]]
    left = max(text_width(name) for name in names) + gap
    labels = {name: f"{number(part.us)} µs" for name, part in costs.parts.items()} | {"in all": f"{number(whole)} µs"}
    canvas = Canvas(height=row * len(names))
    scale = (canvas.width - left - max(map(text_width, labels.values())) - gap) / whole

    def draw(place: int, name: str, start: float, us: float, color: str) -> None:
        y = row * place
        canvas.text(left - gap, y + row / 2, name, "right", bold=name == "in all")
        length = max(us * scale, 1)
        canvas.box(left + start * scale, y + (row - bar) / 2, length, bar, color, fill=1, edge=0, radius=0)
        canvas.text(left + start * scale + length + 5, y + row / 2, labels[name])

    draw(0, "in all", 0, whole, GREY)
    start = 0.0
    for place, (name, part) in zip(range(len(costs.parts), 0, -1), costs.parts.items(), strict=True):
        draw(place, name, start, part.us, PARTS.get(name, GREY))
        start += max(part.us, 0.0)
    canvas.line([(left, 0), (left, row * len(names))], GREY)
    said = ", ".join(f"{name} {labels[name]} ({part.us / whole:.0%})" for name, part in costs.parts.items())
    alt = f"Bars of where {number(whole)} µs go, one call of a module that adds two rows, from the inside out: {said}."
    inside = next(iter(costs.parts))
    caption = (
        f"One call of a module that adds two rows of 576 numbers. {inside[0].upper()}{inside[1:]} takes "
        f"{costs.parts[inside].us / whole:.1%} of it. Measured on {costs.machine}."
    )
    return Figure(canvas.drawing, alt, caption)


def _ticks(top: float) -> Iterator[float]:
    """About four round numbers from zero on."""
    step = next(s * 10.0**e for e in range(-3, 9) for s in (1, 2, 5) if top / (s * 10.0**e) <= 5)
    for tick in range(int(top / step) + 1):
        yield tick * step
