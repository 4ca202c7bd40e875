"""Paper and pens: a matplotlib axes measured in points, with the few shapes and colours that the book's figures use.

Figures are 346 points wide (4.8 inches) with 10.5 point text, so that they can still be read on a phone. The colours
are told apart by people with colour-blindness (after Okabe and Ito) and stand out at least 3:1 on white and on the
dark page; text never gets one, it has the page's own colour. So shapes that carry text are tinted, with a solid edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from matplotlib.figure import Figure as Drawing
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from onelaunch.viz.figure import FOREGROUND

WIDTH = 346.0  # points
TEXT = 10.5  # points

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#b8578f", "#808080"
# What belongs to a request has its colour in every figure; the fifth request has the first one's again.
REQUESTS = (BLUE, ORANGE, GREEN, PURPLE)


class Canvas:
    """Points from the top left corner, y downwards."""

    def __init__(self, height: float, width: float = WIDTH) -> None:
        self.width, self.height = width, height
        self.drawing = Drawing(figsize=(width / 72, height / 72))
        self.axes = self.drawing.add_axes((0, 0, 1, 1))
        self.axes.set_xlim(0, width)
        self.axes.set_ylim(height, 0)
        self.axes.axis("off")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        align: Literal["left", "center", "right"] = "left",
        bold: bool = False,
        size: float = TEXT,
        faint: bool = False,
    ) -> None:
        """``y`` is the middle of the line. Faint text still has a contrast above 4.5 where the page's has 12."""
        self.axes.text(
            x,
            y,
            text,
            color=FOREGROUND,
            alpha=0.75 if faint else None,
            fontsize=size,
            fontweight="bold" if bold else "normal",
            ha=align,
            va="center_baseline",
            clip_on=False,
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        color: str,
        label: str = "",
        fill: float = 0.22,
        edge: float = 1.0,
        dashed: bool = False,
        radius: float = 2.0,
    ) -> None:
        """A box with an optional label, left out where it would not fit."""
        inset = edge / 2
        radius = min(radius, (width - edge) / 2, (height - edge) / 2)
        shape = (x + inset, y + inset), max(width - edge, 0.1), max(height - edge, 0.1)
        patch: Any
        if radius > 0.5:
            patch = FancyBboxPatch(*shape, boxstyle=f"round,pad=0,rounding_size={radius}")
        else:
            patch = Rectangle(*shape)
        patch.set_facecolor((color, fill))
        patch.set_edgecolor(color if edge else "none")
        patch.set_linewidth(edge)
        patch.set_linestyle((0, (2.5, 2)) if dashed else "solid")
        patch.set_clip_on(False)
        self.axes.add_artist(patch)
        if label and text_width(label) <= width + 2:
            self.text(x + width / 2, y + height / 2, label, "center")

    def line(
        self,
        points: Sequence[tuple[float, float]],
        color: str = FOREGROUND,
        width: float = 0.8,
        alpha: float = 1.0,
        dashed: bool = False,
    ) -> None:
        """A polyline."""
        self._path(Path(list(points)), color, width, alpha, dashed)

    def area(self, points: Sequence[tuple[float, float]], color: str, fill: float = 0.22) -> None:
        """A filled polygon without an edge."""
        self.axes.fill(*zip(*points, strict=True), color=color, alpha=fill, linewidth=0, clip_on=False)

    def curve(self, *points: tuple[float, float], color: str = FOREGROUND, width: float = 0.9) -> None:
        """From the first point to the last; the two between them are a Bezier curve's controls."""
        codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
        self._path(Path(list(points), codes), color, width, alpha=1.0, dashed=False)

    def arrow_head(self, x: float, y: float) -> None:
        """A small triangle that points down at (x, y)."""
        self.axes.fill([x - 3, x + 3, x], [y - 6, y - 6, y], color=FOREGROUND, linewidth=0, clip_on=False)

    def _path(self, path: Path, color: str, width: float, alpha: float, dashed: bool) -> None:
        style: Any = (0, (2, 2)) if dashed else "solid"
        self.axes.add_artist(
            PathPatch(
                path,
                facecolor="none",
                edgecolor=color,
                linewidth=width,
                alpha=alpha,
                linestyle=style,
                capstyle="butt",
                clip_on=False,
            )
        )


@lru_cache(maxsize=4096)
def text_width(text: str, size: float = TEXT) -> float:
    """Points that ``text`` takes in DejaVu Sans, which is wider than the fonts a browser is likely to have. The outline
    leaves out the space around the first and last letter, hence the addition."""
    if not text:
        return 0.0
    path = TextPath((0, 0), text, size=size, prop=FontProperties(family="DejaVu Sans"))
    return float(path.get_extents().width) + 0.3 * size


def number(value: float) -> str:
    """A number for a label: as many digits as one reads."""
    if value >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def join(items: Sequence[object]) -> str:
    """``a, b and c``."""
    words = [str(item) for item in items]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def plural(count: int, noun: str) -> str:
    """``1 page``, ``2 pages``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
