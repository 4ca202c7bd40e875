"""Where a name points and where a graph reads: the same place after a copy, two places after an assignment."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from string import ascii_uppercase
from typing import NamedTuple

from onelaunch.viz.canvas import BLUE, GREY, ORANGE, Canvas, join, number, text_width
from onelaunch.viz.figure import Figure


class Moment(NamedTuple):
    """After one statement: what the memory holds, where the name points, and what a replay now computes.

    done: the statement. memory: address -> value. points_to: an address, or None where no name is left for it.
    computes: None before the first replay.
    """

    done: str
    memory: Mapping[Hashable, float]
    points_to: Hashable
    computes: float | None


def name_and_graph(name: str, moments: Sequence[Moment], reads: Hashable) -> Figure:
    """For each moment a strip: the name on the left, memory in the middle, the graph on the right.

    reads: the address that the graph was recorded with. Addresses become letters, in the order they appear.
    """
    moments = [Moment(*moment) for moment in moments]
    if not moments or any(reads not in m.memory or m.points_to not in m.memory for m in moments):
        raise ValueError(
            "every moment needs a memory that holds the place the name points to and the one the graph reads"
        )
    places: list[Hashable] = []
    for moment in moments:
        places += [place for place in moment.memory if place not in places]
    letters = dict(zip(places, ascii_uppercase, strict=False))

    title, line, gap = 22.0, 27.0, 12.0
    strips = [title + line * len(moment.memory) for moment in moments]
    canvas = Canvas(height=sum(strips) + gap * (len(moments) - 1))
    name_width = text_width(name) + 14
    cell_x, cell_width, graph_width = name_width + 34, 76.0, text_width("graph") + 14
    graph_x = cell_x + cell_width + 34
    top = 0.0
    for moment, height in zip(moments, strips, strict=True):
        canvas.text(0, top + title / 2, moment.done, bold=True)
        for row, (place, value) in enumerate(moment.memory.items()):
            y = top + title + line * row
            middle = y + line / 2
            is_read = place == reads
            canvas.box(cell_x, y + 2, cell_width, line - 4, ORANGE if is_read else GREY, dashed=not is_read)
            canvas.text(cell_x + 9, middle, letters[place], faint=True)
            canvas.text(cell_x + cell_width / 2 + 8, middle, number(value), "center")
            if place == moment.points_to:
                canvas.box(0, y + 2, name_width, line - 4, BLUE, name)
                _arrow(canvas, name_width + 4, cell_x - 4, middle)
            if is_read:
                canvas.box(graph_x, y + 2, graph_width, line - 4, ORANGE, "graph")
                _arrow(canvas, graph_x - 4, cell_x + cell_width + 4, middle)
                if moment.computes is not None:
                    canvas.text(graph_x + graph_width + 8, middle, f"replay: {number(moment.computes)}")
        top += height + gap
    return Figure(canvas.drawing, *_words(name, moments, reads, letters))


def _arrow(canvas: Canvas, start: float, end: float, y: float) -> None:
    back = 5.0 if end > start else -5.0
    canvas.line([(start, y), (end, y)])
    canvas.line([(end - back, y - 3), (end, y), (end - back, y + 3)])


def _words(name: str, moments: Sequence[Moment], reads: Hashable, letters: Mapping[Hashable, str]) -> tuple[str, str]:
    """Alt text and caption."""
    said = [
        f"after {m.done}, {name} points to {letters[m.points_to]}, and the graph reads {letters[reads]}, "
        f"which holds {number(m.memory[reads])}"
        for m in moments
    ]
    alt = f"Where the name {name} points and where the graph reads: {'; '.join(said)}."
    apart = [m.done for m in moments if m.points_to != reads]
    caption = f"The graph reads place {letters[reads]} and no other, whatever the name {name} points to."
    if apart:
        caption += f" After {join(apart)} the two have parted: the new value lies where the graph does not look."
    return alt, caption
