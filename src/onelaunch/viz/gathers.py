"""What attention by gathering reads: rows of one fixed length, of which each request uses a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onelaunch.viz.canvas import GREY, REQUESTS, Canvas, join, plural, text_width
from onelaunch.viz.figure import Figure


def gathered_tokens(steps: Mapping[str, Sequence[int]], max_len: int) -> Figure:
    """For each step one bar a request: as long as the longest possible sequence, filled as far as there are tokens.

    steps: name of the step -> the lengths of its requests. max_len: tokens that each row is gathered for.
    """
    if not steps or any(not lengths or not all(0 < n <= max_len for n in lengths) for lengths in steps.values()):
        raise ValueError(
            f"every step needs requests with lengths of 1 to {max_len}, which is what is gathered; found {steps}"
        )
    heading, row, bar, gap = 20.0, 20.0, 14.0, 8.0
    height = sum(heading + row * len(lengths) for lengths in steps.values()) + gap * (len(steps) - 1)
    canvas = Canvas(height=height + 18)
    left = text_width("request 0") + 4
    right = text_width(str(max_len)) + 8
    width = canvas.width - left - right
    y = 0.0
    for name, lengths in steps.items():
        canvas.text(0, y + heading / 2, name, bold=True)
        y += heading
        for request, length in enumerate(lengths):
            color, top = REQUESTS[request % len(REQUESTS)], y + (row - bar) / 2
            canvas.text(0, y + row / 2, f"request {request}")
            canvas.box(left, top, width, bar, GREY, fill=0.06, edge=0.8, dashed=True, radius=0)
            canvas.box(left, top, max(width * length / max_len, 2), bar, color, fill=0.30, edge=1, radius=0)
            canvas.text(canvas.width, y + row / 2, str(length), "right")
            y += row
        y += gap
    canvas.text(left, height + 8, "0", faint=True)
    canvas.text(left + width, height + 8, f"{max_len} tokens", "right", faint=True)
    return Figure(canvas.drawing, *_words(steps, max_len))


def _words(steps: Mapping[str, Sequence[int]], max_len: int) -> tuple[str, str]:
    """Alt text and caption."""
    said = [f"{name}: {join([str(length) for length in lengths])}" for name, lengths in steps.items()]
    alt = (
        f"Bars of {plural(max_len, 'token')} each, one for each request of a step, filled as far as the request is "
        f"long. {'; '.join(said)}."
    )
    used = sum(sum(lengths) for lengths in steps.values())
    read = max_len * sum(len(lengths) for lengths in steps.values())
    caption = (
        f"Every row is gathered for {plural(max_len, 'token')}, in each step the same. What changes is how far the "
        f"mask lets attention look. Of {read:,} positions read here, {used:,} hold a token ({used / read:.0%})."
    )
    return alt, caption
