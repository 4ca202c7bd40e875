"""How many requests run at once in a service over time, beside the largest batch that has a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onelaunch.viz.canvas import BLUE, GREEN, GREY, ORANGE, PURPLE, Canvas, number
from onelaunch.viz.figure import Figure

COLORS = (ORANGE, BLUE, GREEN, PURPLE)
LEFT, PLOT, LINE = 30.0, 170.0, 19.0


def running_requests(
    curves: Mapping[int, Sequence[tuple[float, int]]], burst_s: float | None = None, caption: str | None = None
) -> Figure:
    """Requests in the batch over time, one curve for each ceiling; the ceilings are dashed, in the curve's colour.

    curves: the largest batch that has a graph -> (seconds, running requests), by time. burst_s: when more requests than
    usual came. Raises ValueError for nothing to draw, and for more curves than there are colours.
    """
    if not curves or not all(curves.values()) or len(curves) > len(COLORS):
        raise ValueError(f"there must be 1 to {len(COLORS)} curves with points, found {len(curves)}")
    end = max(points[-1][0] for points in curves.values())
    highest = max([*curves, *(count for points in curves.values() for _, count in points)])
    canvas = Canvas(height=PLOT + 36 + LINE * len(curves))
    unit_x, unit_y = (canvas.width - LEFT - 6) / max(end, 1e-9), (PLOT - 22) / (1.08 * highest)

    def at(seconds: float, count: float) -> tuple[float, float]:
        return LEFT + seconds * unit_x, PLOT - count * unit_y

    _axes(canvas, end, highest, unit_x, unit_y)
    if burst_s is not None:
        x = at(burst_s, 0)[0]
        canvas.line([(x, PLOT), (x, 20)], GREY, dashed=True)
        canvas.text(x, 12, "a burst", "center", faint=True)
    said = []
    for index, (ceiling, points) in enumerate(curves.items()):
        color = COLORS[index]
        canvas.line([at(0, ceiling), at(end, ceiling)], color, width=1.0, dashed=True)
        canvas.line([at(*point) for point in points], color, width=1.8)
        y = PLOT + 36 + LINE * (index + 0.5)
        canvas.line([(0, y), (18, y)], color, width=2.2)
        canvas.text(24, y, f"graphs up to {ceiling} requests: {points[-1][1]} run at the end")
        most = max(count for _, count in points)
        said.append(
            f"with graphs up to {ceiling}, {points[0][1]} to {most} requests run, and {points[-1][1]} at the end"
        )
    when = f", a burst at {number(burst_s)} s" if burst_s is not None else ""
    return Figure(canvas.drawing, f"Running requests over {number(end)} seconds{when}: {'; '.join(said)}.", caption)


def _axes(canvas: Canvas, end: float, highest: int, unit_x: float, unit_y: float) -> None:
    for size, unit, level in ((end, unit_x, True), (highest, unit_y, False)):
        step = next(s * 10**e for e in range(6) for s in (1, 2, 5) if size / (s * 10**e) <= 6)
        for tick in range(0, int(size) + 1, step):
            if level:
                x = LEFT + tick * unit
                canvas.line([(x, PLOT), (x, PLOT + 4)], GREY)
                canvas.text(x, PLOT + 13, str(tick), "center", faint=True)
            else:
                canvas.line([(LEFT, PLOT - tick * unit), (canvas.width - 6, PLOT - tick * unit)], GREY, width=0.3)
                canvas.text(LEFT - 6, PLOT - tick * unit, str(tick), "right", faint=True)
    canvas.line([(LEFT, PLOT), (canvas.width - 6, PLOT)], GREY)
    canvas.text(canvas.width, PLOT + 27, "seconds", "right", faint=True)
