"""The memory of a graph in time: which tensor stands where, from which kernel to which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onelaunch.viz.canvas import GREY, Canvas, plural, text_width
from onelaunch.viz.figure import Figure
from onelaunch.viz.labels import COLORS, position, short

if TYPE_CHECKING:
    from onelaunch.tape import Buffer, Tape

LEFT, TOP, HEIGHT, GAP = 62.0, 40.0, 170.0, 14.0


def pool_map(*tapes: Tape) -> Figure:
    """Address upwards, kernels from left to right: a box for each tensor, from the kernel that makes it to the one
    before which its memory is free again.

    tapes: one, or several that share a pool, in the order of their captures, one panel each. Outputs that are still
    held are drawn dashed in the other panels: a box that crosses one is a kernel that overwrites it.
    """
    if not tapes or any(tape.pool is not tapes[0].pool for tape in tapes):
        raise ValueError("pool_map needs one tape, or several that share a pool")
    pool = tapes[0].pool
    owned = [[buffer for buffer in tape.buffers if not buffer.outside and buffer.nbytes] for tape in tapes]
    if not any(owned):
        raise ValueError("there is nothing to draw: nothing lies in the pool")
    tops: dict[int, int] = {}  # by segment: the highest byte that is used
    for buffer in (buffer for buffers in owned for buffer in buffers):
        segment, offset = position(pool, buffer)
        tops[segment] = max(tops.get(segment, 0), offset + buffer.nbytes)
    top = TOP if len(tapes) > 1 else TOP - 18
    scale = (HEIGHT - GAP * (len(tops) - 1)) / sum(tops.values())
    bases: dict[int, float] = {}  # by segment: y of its first byte
    y = top + HEIGHT
    for segment in sorted(tops):
        bases[segment] = y
        y -= tops[segment] * scale + GAP
    canvas = Canvas(height=top + HEIGHT + 34)
    counts = [len(tape.kernels) for tape in tapes]
    width = (canvas.width - LEFT - GAP * (len(tapes) - 1)) / sum(counts)

    def box(buffer: Buffer, x: float, length: float, label: str = "", dashed: bool = False) -> None:
        segment, offset = position(pool, buffer)
        height = buffer.nbytes * scale
        canvas.box(
            x,
            bases[segment] - offset * scale - height,
            max(length, 1),
            height,
            COLORS[buffer.kind],
            label if height >= 12 else "",
            fill=0 if dashed else 0.24,
            edge=1.0 if height > 3 else 0.4,
            dashed=dashed,
            radius=1.5,
        )

    _axis(canvas, tops, bases, scale, top)
    x = LEFT
    for number, (tape, buffers) in enumerate(zip(tapes, owned, strict=True)):
        if len(tapes) > 1:
            canvas.text(x, 8, f"graph {number + 1}", bold=True)
        for buffer in buffers:
            first, end = lifetime(tape, buffer)
            box(buffer, x + width * first, width * (end - first), short(tape.kernels[first]))
        for buffer in (other for at, others in enumerate(owned) if at != number for other in others):
            if buffer.kind == "output":
                box(buffer, x, width * counts[number], dashed=True)
        _ticks(canvas, x, width, counts[number], top + HEIGHT)
        x += width * counts[number] + GAP
    canvas.text(canvas.width, top + HEIGHT + 26, "kernel", "right", faint=True)
    _legend(canvas, len(tapes) > 1, top - 12)
    return Figure(canvas.drawing, *_words(tapes, owned))


def lifetime(tape: Tape, buffer: Buffer) -> tuple[int, int]:
    """Number of the kernel that makes it, and of the one before which its memory is free again."""
    first = buffer.first_use if buffer.first_use is not None else 0
    return first, buffer.freed if buffer.freed is not None else len(tape.kernels)


def _axis(canvas: Canvas, tops: dict[int, int], bases: dict[int, float], scale: float, top: float) -> None:
    """Bytes from the start of each segment."""
    canvas.text(0, top - 12, "address", faint=True)
    for segment, used in tops.items():
        low, high = bases[segment], bases[segment] - used * scale
        canvas.line([(LEFT - 3, low), (LEFT - 3, high)], GREY)
        canvas.text(LEFT - 7, low - 5, "0", "right", faint=True)
        if low - high > 22:
            canvas.text(LEFT - 7, high + 5, size(used), "right", faint=True)


def _ticks(canvas: Canvas, x: float, width: float, count: int, y: float) -> None:
    every = next(n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if n * width >= 24)
    canvas.line([(x, y), (x + width * count, y)], GREY)
    for kernel in range(0, count, every):
        canvas.text(x + width * (kernel + 0.5), y + 11, str(kernel), "center", faint=True)


def _legend(canvas: Canvas, shared: bool, y: float) -> None:
    x = LEFT
    kinds = [("in use", COLORS["intermediate"], False), ("output", COLORS["output"], False)]
    if shared:
        kinds.append(("another graph's output", COLORS["output"], True))
    for name, color, dashed in kinds:
        canvas.box(x, y - 5, 10, 10, color, fill=0 if dashed else 0.24, dashed=dashed, radius=1.5)
        canvas.text(x + 14, y, name)
        x += 14 + text_width(name) + 12


def size(nbytes: int) -> str:
    """``512 B``, ``24 KiB``, ``1.5 MiB``."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            value = nbytes / unit
            return f"{value:.0f} {name}" if value == round(value) or value >= 100 else f"{value:.1f} {name}"
    return f"{nbytes} B"


def _words(tapes: Sequence[Tape], owned: Sequence[Sequence[Buffer]]) -> tuple[str, str]:
    """Alt text and caption."""
    pool = tapes[0].pool
    said = []
    for number, (tape, buffers) in enumerate(zip(tapes, owned, strict=True)):
        outputs = sum(buffer.kind == "output" for buffer in buffers)
        graph = f"graph {number + 1} has " if len(tapes) > 1 else ""
        said.append(
            f"{graph}{plural(len(tape.kernels), 'kernel')} and {plural(len(buffers), 'tensor')} in the pool, "
            f"{outputs} of them {'an output' if outputs == 1 else 'outputs'}"
        )
    alt = (
        f"A map of addresses and time: {'; '.join(said)}. At most {size(pool.peak_bytes)} are in use at one time; "
        f"without reuse it would be {size(pool.naive_bytes)}."
    )
    caption = (
        f"At most {size(pool.peak_bytes)} are in use at one time; with nothing used twice it would be "
        f"{size(pool.naive_bytes)}. A box ends where the last reference to its tensor is gone."
    )
    return alt, caption
