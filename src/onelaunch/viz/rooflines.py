"""Kernels under the roof of a GPU, and simulated steps beside published ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from onelaunch.viz.canvas import BLUE, GREY, ORANGE, Canvas, join, number, text_width
from onelaunch.viz.figure import Figure

if TYPE_CHECKING:
    from onelaunch.timeline.hardware import Hardware
    from onelaunch.timeline.published import Comparison
    from onelaunch.timeline.roofline import KernelCost

_COLORS = {"matmul": BLUE, "attention": ORANGE, "elementwise": GREY}
_WORDS = {"matmul": "products", "attention": "attention", "elementwise": "the rest"}


def roofline(steps: Mapping[str, Sequence[KernelCost]], gpu: str | Hardware) -> Figure:
    """Where the kernels of one or more steps stand under the roof of a GPU.

    steps: a label for each, such as the batch, and its kernels' costs. Kernels of a kind are drawn as one point: their
    operations for each byte, and the rate that the roof then allows. gpu: a name or a ``Hardware``; its roof is the
    data sheet's, without an efficiency.
    """
    from onelaunch.timeline.hardware import hardware

    gpu = hardware(gpu)
    points = {label: _points(costs) for label, costs in steps.items()}
    if not any(points.values()):
        raise ValueError("there is nothing to draw: every step needs at least one kernel with operations")
    rates = sorted({cost.rate for costs in steps.values() for cost in costs if cost.kind == "matmul"}) or ["fp32"]
    peak = gpu.tflops(rates[0])
    low, high = 0.05, max(2000.0, *(x * 1.5 for found in points.values() for x in found.values()))
    bottom, top = low * gpu.memory_gb_s / 1e3, peak * 2.2
    left, plot, line = 40.0, 208.0, 17.0
    canvas = Canvas(height=plot + 40 + line)

    def at(intensity: float, rate: float) -> tuple[float, float]:
        x = math.log(intensity / low) / math.log(high / low)
        y = math.log(rate / bottom) / math.log(top / bottom)
        return left + x * (canvas.width - left - 8), plot - y * (plot - 14)

    def roof(intensity: float) -> float:
        return min(intensity * gpu.memory_gb_s / 1e3, peak)

    canvas.line([(left, 8), at(low, bottom), at(high, bottom)], GREY)
    for power in range(-1, 4):
        x, _ = at(10.0**power, bottom)
        canvas.line([(x, plot), (x, plot + 4)], GREY)
        canvas.text(x, plot + 13, number(10.0**power), "center", faint=True)
    for power in range(math.ceil(math.log10(bottom)), math.floor(math.log10(top)) + 1):
        canvas.text(left - 5, at(low, 10.0**power)[1], number(10.0**power), "right", faint=True)
    canvas.text(canvas.width, plot + 28, "operations for each byte", "right", faint=True)
    canvas.text(left + 6, 10, "TFLOP/s", faint=True)
    ridge = peak * 1e3 / gpu.memory_gb_s
    canvas.line([at(low, roof(low)), at(ridge, peak), at(high, peak)], width=1.6)
    canvas.line([at(ridge, peak), at(ridge, bottom)], GREY, dashed=True)
    canvas.text(at(ridge, peak)[0], at(ridge, peak)[1] - 9, f"{gpu.name}: {number(ridge)}", "center", bold=True)
    for label, found in points.items():
        for kind, intensity in found.items():
            x, y = at(intensity, roof(intensity))
            canvas.box(x - 4, y - 4, 8, 8, _COLORS[kind], fill=1, edge=0, radius=4)
            if kind == "matmul":
                canvas.text(x + 8, y + 7, label)
    x = 0.0
    for kind, color in _COLORS.items():
        canvas.box(x, plot + 40, 8, 8, color, fill=1, edge=0, radius=4)
        canvas.text(x + 13, plot + 44, _WORDS[kind])
        x += 30 + text_width(_WORDS[kind])
    said = [
        f"{label}: " + join([f"{_WORDS[kind]} {number(x)}" for kind, x in found.items()])
        for label, found in points.items()
    ]
    return Figure(
        canvas.drawing,
        f"A roofline of the {gpu.name}: the rate rises with the operations for each byte up to {number(ridge)} and is "
        f"{number(peak)} TFLOP a second from there. Operations for each byte, by kind of kernel: {'; '.join(said)}.",
        f"Left of {number(ridge)} operations for each byte memory sets the pace, right of it arithmetic. Products "
        "move to the right as the batch grows, because the weights are read once for all rows. Attention does not: "
        "each request has a cache of its own.",
    )


def _points(costs: Sequence[KernelCost]) -> dict[str, float]:
    """Operations for each byte of each kind of kernel, all of a kind together."""
    found = {}
    for kind in _COLORS:
        some = [cost for cost in costs if (cost.kind if cost.kind in _COLORS else "elementwise") == kind]
        moved, computed = sum(cost.bytes for cost in some), sum(cost.operations for cost in some)
        if moved and computed:
            found[kind] = computed / moved
    return found


def simulated_against_published(comparisons: Sequence[Comparison]) -> Figure:
    """Each published step as a point: published time to the right, simulated time upwards, a band within 10%.

    What lies more than a quarter off carries the name of its engine.
    """
    if not comparisons:
        raise ValueError("there is nothing to draw: give at least one comparison")
    times = {
        "eager": [(found.row.engine, found.row.eager_ms, found.eager.step_us / 1e3) for found in comparisons],
        "graph": [(found.row.engine, found.row.graph_ms, found.graph.step_us / 1e3) for found in comparisons],
    }
    everything = [point for points in times.values() for point in points]
    low = min(min(published, simulated) for _, published, simulated in everything) / 1.25
    high = max(max(published, simulated) for _, published, simulated in everything) * 1.25
    left, plot = 34.0, 250.0
    canvas = Canvas(height=plot + 54)

    def at(published: float, simulated: float) -> tuple[float, float]:
        x, y = (math.log(ms / low) / math.log(high / low) for ms in (published, simulated))
        return left + x * (canvas.width - left - 8), plot - y * (plot - 8)

    upper = [at(low, low), at(low, low * 1.1), at(high / 1.1, high), at(high, high)]
    canvas.area([*upper, at(high, high / 1.1), at(low * 1.1, low)], GREY, fill=0.18)
    canvas.line([(left, 4), at(low, low), at(high, low)], GREY)
    for tick in (1, 2, 5, 10, 20, 50, 100):
        if low <= tick <= high:
            canvas.text(at(tick, low)[0], plot + 12, str(tick), "center", faint=True)
            canvas.text(left - 5, at(low, tick)[1], str(tick), "right", faint=True)
    canvas.text(canvas.width, plot + 27, "published, ms", "right", faint=True)
    canvas.text(left + 6, 9, "simulated, ms", faint=True)
    near, named = 0, set()
    for color, points in zip((BLUE, ORANGE), times.values(), strict=True):
        for engine, published, simulated in points:
            x, y = at(published, simulated)
            canvas.box(x - 4, y - 4, 8, 8, color, fill=0.6, radius=4)
            off = simulated / published
            near += abs(off - 1) <= 0.1
            if abs(off - 1) > 0.25 and (engine, off > 1) not in named:
                named.add((engine, off > 1))
                if off > 1:
                    canvas.text(x - 8, y - 9, engine, "right")
                else:  # on a line down to where nothing else is
                    under = y + 30 + 22 * sum(not above for _, above in named)
                    canvas.line([(x, y + 5), (x, under - 8)], GREY)
                    canvas.text(x + 6, under, engine, "right")
    x = 0.0
    for color, mode in ((BLUE, "eager"), (ORANGE, "with a graph")):
        canvas.box(x, plot + 42, 8, 8, color, fill=0.6, radius=4)
        canvas.text(x + 13, plot + 46, mode)
        x += 30 + text_width(mode)
    far = sorted({engine for engine, _ in named})
    return Figure(
        canvas.drawing,
        f"{len(everything)} published step times against simulated ones, on a diagonal with a band of 10% around it. "
        f"{near} lie inside the band. More than a quarter off: {join(far) if far else 'none'}.",
        f"{near} of {len(everything)} simulated times are within 10% of what was published.",
    )
