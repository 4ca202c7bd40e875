"""What became of each of several trials in each of several settings: a grid of words."""

from __future__ import annotations

from collections.abc import Mapping

from onelaunch.viz.canvas import BLUE, GREY, ORANGE, PURPLE, Canvas, join, text_width
from onelaunch.viz.figure import Figure

# An outcome has its colour in every figure; those without one are grey.
OUTCOME_COLORS = {"right": BLUE, "bitwise": BLUE, "wrong": ORANGE, "different": ORANGE, "refused": PURPLE}


def outcomes(table: Mapping[str, Mapping[str, str]], caption: str | None = None) -> Figure:
    """A row for each trial, a column for each setting, a box with the outcome in each place.

    table: trial -> setting -> a word. ``right``, ``wrong`` and ``refused`` have colours of their own.
    """
    columns = list(dict.fromkeys(setting for row in table.values() for setting in row))
    if not columns:
        raise ValueError("there is nothing to draw: no trial has an outcome")
    words = {word for row in table.values() for word in row.values()}
    line, top = 25.0, 24.0
    canvas = Canvas(height=top + line * len(table))
    width = max(text_width(word) for word in [*words, *columns]) + 12
    left = canvas.width - width * len(columns)
    too_long = [name for name in table if text_width(name) > left - 4]
    if too_long:
        raise ValueError(f"there is no room for a name as long as {too_long[0]!r} beside {len(columns)} columns")
    for number, name in enumerate(columns):
        canvas.text(left + width * (number + 0.5), 8, name, "center", bold=True)
    for row, (trial, found) in enumerate(table.items()):
        y = top + line * row
        canvas.text(0, y + line / 2, trial)
        for number, name in enumerate(columns):
            word = found.get(name)
            if word is not None:
                color = OUTCOME_COLORS.get(word, GREY)
                canvas.box(left + width * number + 2, y + 2, width - 4, line - 4, color, dashed=word == "wrong")
                canvas.text(left + width * (number + 0.5), y + line / 2, word, "center")
    said = [f"{trial}: {join([f'{name} {word}' for name, word in found.items()])}" for trial, found in table.items()]
    return Figure(canvas.drawing, f"Outcomes of {join(list(table))}. {'; '.join(said)}.", caption)
