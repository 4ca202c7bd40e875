"""Who takes part in which step: continuous batching as a grid."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from onelaunch.viz.canvas import FOREGROUND, GREY, REQUESTS, Canvas, plural, text_width
from onelaunch.viz.figure import Figure


def batch_timeline(steps: Sequence[tuple[str, Sequence[int]]]) -> Figure:
    """One row for each request, one column for each step; below, how many requests the step has.

    steps: (phase, requests) for each step, phase "prefill" or "decode", requests by number.
    """
    if not steps or any(phase not in ("prefill", "decode") or not who for phase, who in steps):
        raise ValueError("steps must hold (phase, requests) pairs: phase 'prefill' or 'decode', one request or more")
    requests = sorted({request for _, who in steps for request in who})
    left, row, gap = 66.0, 21.0, 14.0
    sizes_height = 40.0
    top = 24.0
    canvas = Canvas(height=top + row * len(requests) + gap + sizes_height + 36)
    width = (canvas.width - left - 4) / len(steps)

    _legend(canvas, left)
    for line, request in enumerate(requests):
        y = top + row * line
        canvas.text(0, y + row / 2, f"request {request}")
        mine = [step for step, (_, who) in enumerate(steps) if request in who]
        for before, after in pairwise(mine):
            if after > before + 1:  # it is there and waits
                canvas.line([(left + width * (before + 1), y + row / 2), (left + width * after, y + row / 2)], GREY)
        for step in mine:
            is_prefill = steps[step][0] == "prefill"
            color = REQUESTS[line % len(REQUESTS)]
            inset = min(0.5, width / 10)
            canvas.box(
                left + width * step + inset,
                y + 2.5,
                width - 2 * inset,
                row - 5,
                color,
                fill=1 if is_prefill else 0.24,
                edge=min(0.8, width / 6),
                radius=1.5,
            )
    _sizes(canvas, steps, left, width, top + row * len(requests) + gap, sizes_height)
    return Figure(canvas.drawing, *_words(steps, requests))


def _legend(canvas: Canvas, x: float) -> None:
    for word, fill in (("prefill", 1.0), ("decode", 0.24)):
        canvas.box(x, 3, 10, 10, GREY, fill=fill, edge=0.8, radius=1.5)
        canvas.text(x + 14, 8, word)
        x += 14 + text_width(word) + 16


def _sizes(
    canvas: Canvas, steps: Sequence[tuple[str, Sequence[int]]], left: float, width: float, top: float, height: float
) -> None:
    """The batch size as a staircase, with its value over every stair that is wide enough for it."""
    sizes = [len(who) for _, who in steps]
    base, unit = top + height, (height - 14) / max(sizes)
    canvas.text(0, base - unit * max(sizes) / 2, "batch size")
    points = []
    for step, size in enumerate(sizes):
        points += [(left + width * step, base - unit * size), (left + width * (step + 1), base - unit * size)]
    for size, run in groupby(range(len(sizes)), key=sizes.__getitem__):
        stair = list(run)
        if width * len(stair) > text_width(str(size)) - 2:
            middle = left + width * (stair[0] + stair[-1] + 1) / 2
            canvas.text(middle, base - unit * size - 8, str(size), "center")
    canvas.line([(left, base), *points, (left + width * len(steps), base)], FOREGROUND, width=1.0)
    canvas.line([(left, base), (left + width * len(steps), base)], GREY)
    every = next(n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**9) if n * width >= 26)
    for step in range(0, len(steps), every):
        canvas.text(left + width * (step + 0.5), base + 10, str(step), "center", faint=True)
    canvas.text(canvas.width, base + 26, "step", "right", faint=True)


def _words(steps: Sequence[tuple[str, Sequence[int]]], requests: Sequence[int]) -> tuple[str, str]:
    """Alt text and caption."""
    lives = []
    for request in requests:
        mine = [step for step, (_, who) in enumerate(steps) if request in who]
        lives.append(f"request {request} runs from step {mine[0]} to {mine[-1]}")
    sizes = [len(who) for _, who in steps]
    changes = sum(a != b for a, b in pairwise(sizes))
    alt = (
        f"A grid of requests and steps: {'; '.join(lives)}. The batch size lies between {min(sizes)} and {max(sizes)} "
        f"and changes {plural(changes, 'time')}."
    )
    caption = (
        f"Who takes part in which of {plural(len(steps), 'step')}. While one request's prompt is computed (prefill), "
        "the others wait one step. The batch size changes whenever a request joins or leaves."
    )
    return alt, caption
