"""What the figures of a tape call its memory, and in which colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onelaunch.viz.canvas import BLUE, GREEN, GREY, ORANGE, PURPLE, Canvas, text_width

if TYPE_CHECKING:
    from torch import Tensor

    from onelaunch.tape import Buffer, Kernel, Pool, Tape

COLORS = {
    "input": BLUE,
    "state": PURPLE,
    "weight": GREY,
    "constant": GREY,
    "intermediate": GREEN,
    "output": ORANGE,
}


class Labels:
    """Short names for the buffers of a tape.

    Memory from outside has the name that ``names`` gives to a tensor on it, else its kind and a number. Memory of the
    pool has its address, in bytes from the start of its segment: ``@0``, or ``2:@0`` in a second segment. An output has
    both.
    """

    def __init__(self, tape: Tape, names: Mapping[str, Tensor] | None = None) -> None:
        self.tape = tape
        self._names = {tensor.untyped_storage().data_ptr(): name for name, tensor in (names or {}).items()}

    def of(self, buffer: Buffer) -> str:
        if buffer.outside:
            return self._names.get(buffer.address, f"{buffer.kind} {buffer.index}")
        name = self._names.get(buffer.address, "") if buffer.kind == "output" else ""
        return f"{name} {place(self.tape.pool, buffer)}".strip()


def place(pool: Pool, buffer: Buffer) -> str:
    """Where a buffer lies in its pool."""
    number, offset = position(pool, buffer)
    return f"@{offset}" if number == 0 else f"{number + 1}:@{offset}"


def position(pool: Pool, buffer: Buffer) -> tuple[int, int]:
    """Number of the segment, and bytes from its start. Raises ValueError where the pool has given it back."""
    for number, segment in enumerate(pool.segments):
        if segment.address <= buffer.address < segment.address + segment.nbytes:
            return number, buffer.address - segment.address
    raise ValueError(
        f"the memory of buffer {buffer.index} ({buffer.kind}) was given back when its graph was reset or deleted. "
        "Draw it before the graph is reset, or keep the graph."
    )


def short(kernel: Kernel) -> str:
    """``mm`` for ``aten::mm``, ``mul`` for ``aten::mul.Tensor``, ``mul_`` where it writes in place."""
    name = kernel.name.split("::")[-1].split(".")[0]
    return name.strip("_") + ("_" if name.endswith("_") else "")


def legend(canvas: Canvas, kinds: list[str], x: float, y: float) -> None:
    """A coloured square and a word for each kind."""
    for kind in kinds:
        canvas.box(x, y - 5, 10, 10, COLORS[kind], fill=0.30, radius=1.5)
        canvas.text(x + 14, y, kind)
        x += 14 + text_width(kind) + 10
