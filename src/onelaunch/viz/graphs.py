"""The tape as a graph: which kernel needs the result of which other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from onelaunch.viz.canvas import GREY, PURPLE, Canvas, join, plural, text_width
from onelaunch.viz.figure import Figure
from onelaunch.viz.labels import COLORS, Labels, short
from onelaunch.viz.layers import Edge, Node, arrange

if TYPE_CHECKING:
    from torch import Tensor

    from onelaunch.tape import Tape

LAYER, BOX, TOP, MARGIN = 44.0, 20.0, 38.0, 50.0


def tape_graph(tape: Tape, names: Mapping[str, Tensor] | None = None, kernels: int = 24) -> Figure:
    """Kernels as boxes, from top to bottom; a line where one reads what another wrote.

    A dashed line joins kernels that no number passes between and that must keep their order all the same, because the
    later one writes to memory that the earlier one uses. Weights are left out. names: what to call memory from outside,
    name -> tensor. kernels: how many to draw.
    """
    if not tape.kernels:
        raise ValueError("there is nothing to draw: the tape holds no kernel")
    drawn = min(kernels, len(tape.kernels))
    data = data_edges(tape, drawn)
    memory = memory_edges(tape, data, drawn)
    side = [kernel.index for kernel in tape.kernels[:drawn] if kernel.stream != tape.kernels[-1].stream]
    boxes, ends = _boxes(tape, Labels(tape, names), drawn)
    lines = ends + data
    layout = arrange(list(boxes), lines)
    canvas = Canvas(height=TOP + LAYER * (layout.layers - 1) + BOX + 6)

    def place(spot: tuple[int, float], edge: float = 0.0) -> tuple[float, float]:
        layer, across = spot
        return MARGIN + across * (canvas.width - 2 * MARGIN), TOP + LAYER * layer + BOX / 2 + edge

    widths = {node: text_width(text) + 10 for node, (text, _) in boxes.items()}
    _legend(canvas, bool(memory), bool(side))
    for before, after in memory:
        (x, y), (to_x, to_y) = place(layout.spots[before]), place(layout.spots[after])
        if y == to_y:  # side by side
            aside = (1 if to_x > x else -1) / 2
            ends_at = [(x + aside * widths[before], y), (to_x - aside * widths[after], y)]
        else:
            aside = BOX / 2 if to_y > y else -BOX / 2
            ends_at = [(x, y + aside), (to_x, to_y - aside)]
        canvas.line(ends_at, GREY, width=1.4, dashed=True)
    for edge in lines:
        route = layout.routes[edge]
        points = [place(route[0], BOX / 2), *(place(spot) for spot in route[1:-1]), place(route[-1], -BOX / 2)]
        for (x, y), (to_x, to_y) in pairwise(points):
            bend = (to_y - y) / 2
            canvas.curve((x, y), (x, y + bend), (to_x, to_y - bend), (to_x, to_y))
        canvas.arrow_head(*points[-1])
    for node, (text, color) in boxes.items():
        x, y = place(layout.spots[node])
        radius = 2 if isinstance(node, int) else 9
        canvas.box(x - widths[node] / 2, y - BOX / 2, widths[node], BOX, color, text, 0.24, radius=radius)
    return Figure(canvas.drawing, *_words(boxes, lines, memory, side, len(tape.kernels)))


def data_edges(tape: Tape, kernels: int) -> list[Edge]:
    """(earlier, later) wherever the later kernel reads what the earlier one wrote last."""
    found: dict[Edge, None] = {}
    writers: dict[int, list[tuple[int, int, int]]] = {}  # by buffer: kernel, first byte, one past the last
    for kernel in tape.kernels[:kernels]:
        for ref in kernel.reads:
            start, end = ref.span
            for other, begin, stop in reversed(writers.get(ref.buffer, [])):
                if begin < end and start < stop:
                    found[other, kernel.index] = None
                    if begin <= start and end <= stop:
                        break
        for ref in kernel.writes:
            writers.setdefault(ref.buffer, []).append((kernel.index, *ref.span))
    return list(found)


def memory_edges(tape: Tape, data: Sequence[Edge], kernels: int) -> list[Edge]:
    """The other pairs of ``tape.dag()`` that must keep their order, without those that follow from the rest."""
    order = {(before, after) for after, earlier in enumerate(tape.dag()[:kernels]) for before in earlier}
    order |= {(int(before), int(after)) for before, after in data}  # type: ignore[call-overload]
    into: dict[int, set[int]] = {}
    for before, after in order:
        into.setdefault(after, set()).add(before)

    def implied(before: int, after: int) -> bool:
        seen, todo = set(), [middle for middle in into[after] if middle != before]
        while todo:
            node = todo.pop()
            if node == before:
                return True
            if node not in seen and node > before:
                seen.add(node)
                todo += into.get(node, ())
        return False

    return sorted(edge for edge in order - set(data) if not implied(*edge))


def _boxes(tape: Tape, labels: Labels, kernels: int) -> tuple[dict[Node, tuple[str, str]], list[Edge]]:
    """Text and colour of each node, the edges from what was there before, and to what is there afterwards. Kernels are
    nodes by their number."""
    boxes: dict[Node, tuple[str, str]] = {}
    edges: dict[Edge, None] = {}
    results: dict[Node, tuple[str, str]] = {}
    last: dict[int, int] = {}  # by buffer: the kernel that wrote it last
    written: set[int] = set()
    for kernel in tape.kernels[:kernels]:
        for ref in kernel.reads:
            buffer = tape.buffers[ref.buffer]
            if buffer.kind in ("input", "state") and buffer.index not in written:
                boxes["from", buffer.index] = (labels.of(buffer), COLORS[buffer.kind])
                edges[("from", buffer.index), kernel.index] = None
        written |= {ref.buffer for ref in kernel.writes}
    for kernel in tape.kernels[:kernels]:
        color = COLORS["intermediate"] if kernel.stream == tape.kernels[-1].stream else PURPLE
        boxes[kernel.index] = (f"{kernel.index} {short(kernel)}", color)
        for ref in kernel.writes:
            buffer = tape.buffers[ref.buffer]
            if buffer.kind in ("output", "state"):
                results["to", buffer.index] = (labels.of(buffer), COLORS[buffer.kind])
                last[buffer.index] = kernel.index
    edges |= {(kernel, ("to", buffer)): None for buffer, kernel in last.items()}
    return boxes | results, list(edges)


def _legend(canvas: Canvas, has_memory: bool, has_side: bool) -> None:
    canvas.line([(0, 8), (22, 8)])
    canvas.text(27, 8, "reads its result")
    if has_memory:
        canvas.line([(135, 8), (157, 8)], GREY, width=1.4, dashed=True)
        canvas.text(162, 8, "uses its memory again")
    if has_side:
        x, y = (0, 24) if has_memory else (135, 8)
        canvas.box(x, y - 5, 22, 10, PURPLE, fill=0.24)
        canvas.text(x + 27, y, "on another stream")


def _words(
    boxes: Mapping[Node, tuple[str, str]],
    lines: Sequence[Edge],
    memory: Sequence[Edge],
    side: Sequence[int],
    total: int,
) -> tuple[str, str]:
    """Alt text and caption."""
    drawn = sum(isinstance(node, int) for node in boxes)
    said = [f"{boxes[a][0]} to {boxes[b][0]}" for a, b in lines]
    again = [f"{boxes[a][0]} before {boxes[b][0]}" for a, b in memory]
    first = f"The first {drawn} of {total} kernels" if drawn < total else plural(total, "kernel")
    alt = f"A graph of {first[0].lower()}{first[1:]}. Lines lead from {join(said or ['nothing to nothing'])}."
    caption = f"{first[0].upper()}{first[1:]}. A line leads from a result to who reads it."
    if side:
        alt += f" On another stream: {join([boxes[kernel][0] for kernel in side])}."
    if again:
        alt += f" Dashed, because memory is used again: {join(again)}."
        caption += " Dashed: no number passes, but the later kernel writes where the earlier one reads or writes."
    return alt, caption
