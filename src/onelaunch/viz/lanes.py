"""Host and device side by side in time: who waits for whom in a step."""

from __future__ import annotations

from onelaunch.viz.canvas import BLUE, GREY, ORANGE, Canvas, number, text_width
from onelaunch.viz.figure import Figure


def host_and_device_lanes(launch_us: float, kernel_us: float, kernels: int = 8) -> Figure:
    """Two lanes: the host launches ``kernels`` kernels one after the other, the device runs them in the same order.

    launch_us: microseconds of the host for one launch. kernel_us: microseconds of the device for one kernel. A kernel
    starts once it has been launched and the one before it is done. This is a model, not a measurement.
    """
    if min(launch_us, kernel_us) <= 0 or kernels < 1:
        raise ValueError(f"times and kernels must be above zero: {launch_us=}, {kernel_us=}, {kernels=}")
    starts: list[float] = []
    for kernel in range(kernels):
        launched = (kernel + 1) * launch_us
        starts.append(max(launched, starts[-1] + kernel_us) if starts else launched)
    end = starts[-1] + kernel_us

    left, lane = 48.0, 24.0
    host_y, device_y, axis_y = 4.0, 62.0, 100.0
    canvas = Canvas(height=136)
    scale = (canvas.width - left - 6) / end

    def x(time_us: float) -> float:
        return left + time_us * scale

    canvas.text(0, host_y + lane / 2, "host", bold=True)
    canvas.text(0, device_y + lane / 2, "device", bold=True)
    free = 0.0
    for start in starts:  # below the kernels, and one shape where a wait has no gap
        if (start - free) * scale > 1:
            canvas.box(x(free), device_y, (start - free) * scale, lane, GREY, fill=0.10, edge=0, radius=0)
            canvas.line([(x(free), device_y + lane / 2), (x(start), device_y + lane / 2)], GREY, dashed=True)
        free = start + kernel_us
    if free > kernels * launch_us and kernel_us > launch_us:
        done = x(kernels * launch_us)
        canvas.line([(done, host_y + lane / 2), (x(end), host_y + lane / 2)], GREY, dashed=True)
        ahead = "free to do other work"
        if x(end) - done > text_width(ahead) + 16:
            canvas.text((done + x(end)) / 2, host_y + lane / 2 - 8, ahead, "center", faint=True)
    for kernel, start in enumerate(starts):
        launched = (kernel + 1) * launch_us
        canvas.line([(x(launched), host_y + lane), (x(start), device_y)], GREY, width=0.9)
        canvas.box(x(kernel * launch_us), host_y, launch_us * scale, lane, BLUE, str(kernel + 1))
        canvas.box(x(start), device_y, kernel_us * scale, lane, ORANGE, str(kernel + 1))
    _time_axis(canvas, axis_y, left, scale, end)
    return Figure(canvas.drawing, *_words(launch_us, kernel_us, kernels))


def _time_axis(canvas: Canvas, y: float, left: float, scale: float, end: float) -> None:
    """Ticks at round times, about five of them."""
    step = next(s for e in range(-3, 9) for s in (10.0**e, 2 * 10.0**e, 5 * 10.0**e) if end / s <= 6)
    canvas.line([(left, y), (left + end * scale, y)], GREY)
    tick = 0
    while tick * step <= end:
        x = left + tick * step * scale
        canvas.line([(x, y), (x, y + 4)], GREY)
        canvas.text(x, y + 13, number(tick * step), "center", faint=True)
        tick += 1
    canvas.text(canvas.width, y + 29, "time in µs", "right", faint=True)


def _words(launch_us: float, kernel_us: float, kernels: int) -> tuple[str, str]:
    """Alt text and caption."""
    costs = f"{kernels} launches of {number(launch_us)} µs and kernels of {number(kernel_us)} µs"
    if launch_us > kernel_us:
        wait = launch_us - kernel_us
        caption = (
            f"Launch-bound: the device runs {number(kernel_us)} µs, then waits {number(wait)} µs for the next launch. "
            "A faster device would only wait longer."
        )
        how = (
            "The host launches without a pause. On the device every kernel is followed by a gap: "
            f"of {number(launch_us)} µs it waits {number(wait)}."
        )
    elif launch_us < kernel_us:
        caption = (
            f"Bound by the device: the host launches a kernel in {number(launch_us)} µs and is far ahead, so the "
            "device finds the next one waiting."
        )
        how = (
            "The device runs without a gap. The host is done early, and every kernel waits longer than the one before."
        )
    else:
        caption = "In balance: each kernel is launched at the moment when the one before it is done."
        how = "Neither waits for the other."
    return f"Two lanes over time, host and device: {costs}. {how}", caption
