"""The tape as a table: a line for each kernel, with all that it knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from onelaunch.viz.canvas import GREY, Canvas, join, plural, text_width
from onelaunch.viz.figure import Figure
from onelaunch.viz.labels import COLORS, Labels, legend, short

if TYPE_CHECKING:
    from torch import Tensor

    from onelaunch.tape import Buffer, Kernel, Tape, TensorRef

ROW, TOP, GAP = 22.0, 46.0, 10.0


def tape_table(tape: Tape, names: Mapping[str, Tensor] | None = None, rows: int = 16) -> Figure:
    """Kernel, what it reads, the numbers frozen in it, what it writes, and the line of code that issued it.

    names: what to call memory from outside, name -> tensor. rows: how many kernels to draw; the caption says how many
    there are.
    """
    if not tape.kernels:
        raise ValueError("there is nothing to draw: the tape holds no kernel")
    labels, drawn = Labels(tape, names), tape.kernels[:rows]
    titles = [f"{kernel.index} {short(kernel)}" for kernel in drawn]
    lines = [str(kernel.where.line) for kernel in drawn]
    reads = [_buffers(tape, kernel.reads) for kernel in drawn]
    writes = [_buffers(tape, kernel.writes) for kernel in drawn]
    canvas = Canvas(height=TOP + ROW * len(drawn) + 2)
    left = max(text_width(text) for text in ["kernel", *titles]) + GAP
    right = canvas.width - max(text_width(text) for text in ["line", *lines]) - GAP
    written = max(_width(labels, buffers) for buffers in writes) + GAP
    written_at = right - max(written, text_width("writes") + GAP)
    frozen = [", ".join(f"{name}={value}" for name, value in kernel.frozen()) for kernel in drawn]
    widest = max(text_width(text) for text in ["frozen", *frozen])
    frozen_at = written_at - min(widest, (written_at - left) / 2) - GAP

    kinds = [kind for kind in COLORS if any(buffer.kind == kind for used in (*reads, *writes) for buffer in used)]
    legend(canvas, kinds, 0, 7)
    for x, title in ((0.0, "kernel"), (left, "reads"), (frozen_at, "frozen"), (written_at, "writes")):
        canvas.text(x, TOP - 12, title, bold=True)
    canvas.text(canvas.width, TOP - 12, "line", "right", bold=True)
    for number in range(len(drawn)):
        y = TOP + ROW * (number + 0.5)
        canvas.line([(0, y - ROW / 2), (canvas.width, y - ROW / 2)], GREY, width=0.5)
        canvas.text(0, y, titles[number])
        _chips(canvas, labels, reads[number], left, y, frozen_at - left - GAP)
        canvas.text(frozen_at, y, _fit(frozen[number], written_at - frozen_at - 4))
        _chips(canvas, labels, writes[number], written_at, y, right - written_at)
        canvas.text(canvas.width, y, lines[number], "right", faint=True)
    return Figure(canvas.drawing, *_words(tape, labels, drawn))


def _buffers(tape: Tape, refs: Sequence[TensorRef]) -> list[Buffer]:
    """The buffers behind ``refs``, each once."""
    return [tape.buffers[index] for index in dict.fromkeys(ref.buffer for ref in refs)]


def _width(labels: Labels, buffers: Sequence[Buffer]) -> float:
    return sum(text_width(labels.of(buffer)) + 8 for buffer in buffers)


def _chips(canvas: Canvas, labels: Labels, buffers: Sequence[Buffer], x: float, y: float, room: float) -> None:
    """A tinted box for each buffer; those that do not fit are counted."""
    end = x + room
    for number, buffer in enumerate(buffers):
        label = labels.of(buffer)
        width = text_width(label) + 4
        rest = len(buffers) - number - 1
        if x + width > end - (text_width(f"+{rest}") if rest else 0):
            canvas.text(x, y, f"+{rest + 1}", faint=True)
            return
        canvas.box(x, y - 8, width, 16, COLORS[buffer.kind], label, fill=0.24)
        x += width + 4


def _fit(text: str, room: float) -> str:
    if text_width(text) <= room or not text:
        return text
    while text and text_width(text + "…") > room:
        text = text[:-1]
    return text + "…"


def _words(tape: Tape, labels: Labels, drawn: Sequence[Kernel]) -> tuple[str, str]:
    """Alt text and caption."""
    said = []
    for kernel in drawn:
        reads = [labels.of(buffer) for buffer in _buffers(tape, kernel.reads)]
        writes = [labels.of(buffer) for buffer in _buffers(tape, kernel.writes)]
        frozen = [f"{name}={value}" for name, value in kernel.frozen()]
        said.append(
            f"{kernel.index} {short(kernel)} reads {join(reads or ['nothing'])}"
            + (f", holds {join(frozen)}" if frozen else "")
            + f", writes {join(writes or ['nothing'])}"
        )
    total, frozen_values = len(tape.kernels), len(tape.frozen())
    first = f"The first {len(drawn)} of {total} kernels" if len(drawn) < total else plural(total, "kernel")
    alt = f"A table of the tape, {first}: {'; '.join(said)}."
    caption = (
        f"{first[0].upper()}{first[1:]}, {plural(frozen_values, 'frozen value')} in all. What is written lies in the "
        "graph's own memory; @ is the address there, in bytes. The same address in two lines is the same memory, used "
        "again."
    )
    return alt, caption
