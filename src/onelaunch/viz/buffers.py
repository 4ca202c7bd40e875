"""What goes into the fixed buffers before a replay, and what stays stale if it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onelaunch.viz.canvas import GREY, REQUESTS, Canvas, join, plural
from onelaunch.viz.figure import Figure


def fixed_buffers(batch: Mapping[str, Sequence[int]], buffers: Mapping[str, Sequence[int]], live: int) -> Figure:
    """The inputs of a step beside the buffers that the graph reads, one line for each input, one box for each row.

    batch: what the step needs, name -> one value a row, padded rows included. buffers: what stands in the buffers, the
    same names. live: how many rows are requests; the rest are dummies. Where the two differ, nothing was copied.
    """
    rows = len(next(iter(batch.values()), ()))
    if batch.keys() != buffers.keys() or any(len(v) != rows for v in (*batch.values(), *buffers.values())):
        raise ValueError("batch and buffers must have the same names, and one value a row")
    if not 0 < live <= rows:
        raise ValueError(f"live must lie in 1 to {rows}, the number of rows; found {live}")
    stale = [name for name in batch if list(batch[name]) != list(buffers[name])]

    left, arrow, line, top = 62.0, 32.0, 28.0, 40.0
    canvas = Canvas(height=top + line * len(batch) + 4)
    width = (canvas.width - left - arrow) / 2 / rows
    right = left + width * rows + arrow
    for x, title in ((left, "this step"), (right, "fixed buffers")):
        canvas.text(x, 8, title, bold=True)
        canvas.text(x, 26, plural(live, "request"), faint=True)
        if rows > live:
            canvas.text(x + width * rows, 26, "dummy" if rows == live + 1 else "dummies", "right", faint=True)
    for number, (name, values) in enumerate(batch.items()):
        y = top + line * number
        middle = y + line / 2
        canvas.text(0, middle, name)
        for x, contents in ((left, values), (right, buffers[name])):
            is_stale = x == right and name in stale
            for row, value in enumerate(contents):
                color = REQUESTS[row % len(REQUESTS)] if row < live and not is_stale else GREY
                fill = 0 if is_stale else 0.24
                canvas.box(x + width * row + 1, y + 3, width - 2, line - 6, color, fill=fill, dashed=is_stale)
                canvas.text(x + width * (row + 0.5), middle, str(value), "center")
        start, end = right - arrow + 3, right - 3
        if name in stale:
            canvas.text((start + end) / 2, middle, "stale", "center", faint=True)
        else:
            canvas.line([(start, middle), (end, middle)])
            canvas.line([(end - 5, middle - 3), (end, middle), (end - 5, middle + 3)])
    return Figure(canvas.drawing, *_words(list(batch), stale, live, rows))


def _words(names: Sequence[str], stale: Sequence[str], live: int, rows: int) -> tuple[str, str]:
    """Alt text and caption."""
    padding = f" and {plural(rows - live, 'dummy row')}" if rows > live else ""
    alt = f"The inputs of a step with {plural(live, 'request')}{padding}, {join(names)}, beside the fixed buffers."
    if not stale:
        return (
            f"{alt} An arrow leads from each input to its buffer, and the values are equal.",
            "All of the step's values are copied, the dummy's too. The graph reads the right side only.",
        )
    copied = join([name for name in names if name not in stale] or ["none"])
    were = "was" if len(stale) == 1 else "were"
    return (
        f"{alt} Arrows lead to the buffers of {copied}. In those of {join(stale)} the values differ.",
        f"{join(stale)} {were} not copied. The graph reads the right side, and finds what an earlier step left there.",
    )
