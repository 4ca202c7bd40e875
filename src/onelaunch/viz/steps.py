"""A simulated step as two lanes, once eager and once as a graph, on one time axis; below it both steps in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onelaunch.viz.canvas import BLUE, GREY, ORANGE, Canvas, number, text_width
from onelaunch.viz.figure import Figure

if TYPE_CHECKING:
    from onelaunch.timeline import Span, Step

LEFT, LANE = 48.0, 20.0
TITLES = {"eager": "eager", "graph": "as a graph", "piecewise": "in pieces"}


def step_lanes(
    steps: Sequence[Step],
    window_us: float | None = None,
    start_us: float = 0.0,
    caption: str | None = None,
    simulated: bool = True,
) -> Figure:
    """What host and device do in a window of each step, one below the other, and how long each step is in all.

    steps: simulated, such as the same kernels eagerly and as a graph; or of a profile (``trace_lanes.as_step``), with
    ``simulated=False``. window_us: how much of the time is drawn; as much as the first step needs for its first ten
    kernels if None. start_us: where the window begins.
    Raises ValueError where there is nothing to draw.
    """
    if not steps:
        raise ValueError("there is nothing to draw: steps is empty")
    window = window_us if window_us is not None else first_kernels_us(steps)
    if window <= 0 or start_us < 0 or start_us >= max(step.step_us for step in steps):
        raise ValueError(f"the window must lie in the steps, found {start_us=}, {window_us=}")
    canvas = Canvas(height=92 * len(steps) + 36 + 20 + 22 * len(steps))
    for index, step in enumerate(steps):
        _lanes(canvas, step, 92.0 * index, start_us, window)
    y = 92.0 * len(steps)
    _time_axis(canvas, y, start_us, window)
    _whole_steps(canvas, steps, y + 36)
    what = "simulated step" if simulated else "step"
    alt = (
        f"Host and device over the first {number(window)} µs of a {what}, "
        if not start_us
        else f"Host and device over {number(window)} µs of a {what} from {number(start_us)} µs on, "
    )
    said = "; ".join(
        f"{TITLES[step.mode]}: {milliseconds(step.step_us)}, the device busy {step.busy_share:.0%} of it, "
        f"{_who_waits(step)}"
        for step in steps
    )
    return Figure(
        canvas.drawing,
        f"{alt}{said}.",
        caption or f"{'Simulated. ' * simulated}Below: the whole step, orange while the device computes.",
    )


def first_kernels_us(steps: Sequence[Step], kernels: int = 10) -> float:
    """A window in which the first kernels of each step end, or nearly."""
    return max(step.device[min(kernels, len(step.device)) - 1].end_us for step in steps)


def milliseconds(us: float) -> str:
    """``6.21 ms``."""
    return f"{us / 1e3:.2f} ms"


def _who_waits(step: Step) -> str:
    if step.launch_bound:
        return "which waits for the host"
    return "and the host waits for it"


def _lanes(canvas: Canvas, step: Step, y: float, start: float, window: float) -> None:
    scale = (canvas.width - LEFT - 4) / window

    def x(us: float) -> float:
        return LEFT + (us - start) * scale

    def clip(span: Span) -> tuple[float, float] | None:
        left, right = max(span.start_us, start), min(span.end_us, start + window)
        return (x(left), x(right) - x(left)) if right > left else None

    host_y, device_y = y + 16, y + 54
    canvas.text(0, y + 7, TITLES[step.mode], bold=True)
    canvas.text(0, host_y + LANE / 2, "host")
    canvas.text(0, device_y + LANE / 2, "device")
    launched: dict[int, float] = {}
    for span in step.host:
        place = clip(span)
        if span.kernel is not None:
            launched[span.kernel] = span.end_us
        elif span.name == "graph launch":
            launched.setdefault(0, span.end_us)
        if place is None:
            continue
        if span.name == "wait":
            canvas.line([(place[0], host_y + LANE / 2), (sum(place), host_y + LANE / 2)], GREY, dashed=True)
            if place[1] > text_width("waits for the device") + 8:
                canvas.text(
                    place[0] + place[1] / 2, host_y + LANE / 2 - 8, "waits for the device", "center", faint=True
                )
            continue
        label = str(span.kernel + 1) if span.kernel is not None else span.name
        label = label if place[1] > 5 else ""  # its width need not be found out
        canvas.box(place[0], host_y, place[1], LANE, BLUE, label, edge=_edge(place[1]))
    free = 0.0
    for span in step.device:
        gap_left, gap_right = max(free, start), min(span.start_us, start + window)
        if (gap_right - gap_left) * scale > 3:
            canvas.line([(x(gap_left), device_y + LANE / 2), (x(gap_right), device_y + LANE / 2)], GREY, dashed=True)
        free = span.end_us
        place = clip(span)
        if place is None:
            continue
        if span.kernel in launched and start <= launched[span.kernel] <= start + window and span.start_us >= start:
            canvas.line([(x(launched[span.kernel]), host_y + LANE), (x(span.start_us), device_y)], GREY, width=0.9)
        canvas.box(place[0], device_y, place[1], LANE, ORANGE, span.name, edge=_edge(place[1]))


def _edge(width: float) -> float:
    """Narrow boxes have a thin edge, so that neighbours can still be told apart."""
    return 1.0 if width > 4 else 0.4


def _time_axis(canvas: Canvas, y: float, start: float, window: float) -> None:
    scale = (canvas.width - LEFT - 4) / window
    step = next(s for e in range(-3, 9) for s in (10.0**e, 2 * 10.0**e, 5 * 10.0**e) if window / s <= 6)
    canvas.line([(LEFT, y), (LEFT + window * scale, y)], GREY)
    tick = -(-start // step) * step
    while tick <= start + window:
        x = LEFT + (tick - start) * scale
        canvas.line([(x, y), (x, y + 4)], GREY)
        canvas.text(x, y + 13, number(tick), "right" if x > canvas.width - 16 else "center", faint=True)
        tick += step
    canvas.text(canvas.width, y + 28, "µs since the step began", "right", faint=True)


def _whole_steps(canvas: Canvas, steps: Sequence[Step], y: float) -> None:
    longest = max(step.step_us for step in steps)
    left = max(text_width(TITLES[step.mode]) for step in steps) + 8
    right = max(text_width(milliseconds(step.step_us)) for step in steps) + 8
    scale = (canvas.width - left - right) / longest
    canvas.text(0, y + 9, "the whole step", bold=True)
    for index, step in enumerate(steps):
        top = y + 20 + 22 * index
        canvas.text(left - 8, top + 9, TITLES[step.mode], "right")
        canvas.box(left, top + 2, step.step_us * scale, 14, GREY, fill=0.15, radius=0)
        canvas.box(left, top + 2, step.busy_us * scale, 14, ORANGE, fill=0.75, edge=0, radius=0)
        canvas.text(left + step.step_us * scale + 6, top + 9, milliseconds(step.step_us))
