"""What two tapes of the same step must have in common, wherever their memory happens to lie."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from onelaunch.tape import Buffer, Kernel, Tape, TensorRef
from onelaunch.tape.tape import replace as replace_in


def place(tape: Tape, buffer: Buffer) -> tuple[int, int] | None:
    """Number of the pool's segment that a buffer lies in, and bytes from its start; None outside the pool."""
    for number, segment in enumerate(tape.pool.segments):
        if segment.address <= buffer.address < segment.address + segment.nbytes:
            return number, buffer.address - segment.address
    return None


def geometry(ref: TensorRef) -> TensorRef:
    """``ref`` without the strides of dimensions of size 1: they lead nowhere, and FakeTensors may have other ones."""
    return replace(ref, stride=tuple(0 if n == 1 else step for n, step in zip(ref.size, ref.stride, strict=False)))


def everything(k: Kernel) -> tuple[Any, ...]:
    return (k.args, list(k.kwargs.values()), k.outputs, k.reads, k.writes)


def plan(tape: Tape) -> dict[str, Any]:
    """Kernels, buffers and pool of ``tape`` without absolute addresses and numbers of streams."""
    return {
        "kernels": [
            (k.index, k.name, k.where.line, list(k.kwargs), *replace_in(everything(k), TensorRef, geometry))
            for k in tape.kernels
        ],
        "buffers": [
            (b.kind, b.nbytes, b.dtype, b.size, b.first_use, b.last_use, b.freed, place(tape, b)) for b in tape.buffers
        ],
        "pool": (tape.pool.peak_bytes, tape.pool.naive_bytes, tape.pool.reserved_bytes),
        "frozen": [(f.kernel, f.op, f.name, f.value, f.where.line) for f in tape.frozen()],
        "dag": tape.dag(),
    }
