"""Lays two recordings of one step side by side and says what the first holds fast that the second has otherwise.

Where nothing differs a replay of the first computes what the second did, because then it issues the same kernels, with
the same numbers, on the same memory. So every wrong replay has its cause among these differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

import torch

from onelaunch.sanitizer.recording import Recording
from onelaunch.tape import Buffer, Kernel, Tape, TensorRef
from onelaunch.tape.generators import key_of
from onelaunch.tape.source import Source

What = Literal["kernels", "number", "memory", "view", "choice", "constant", "made-once"]


@dataclass(frozen=True, eq=False)
class Difference:
    """One thing that was frozen.

    what: ``kernels`` that only one of the two has; a ``number``; the ``memory`` that an argument is; the ``view`` into
    the same memory; the ``choice`` among results of the step itself; a ``constant`` that the host wrote down; memory
    that the first recording ``made-once`` and the second found there. was, now: numbers, or ``TensorRef``s.
    written: whether the argument is written. gone: the kernels that only the first recording has.
    """

    what: What
    where: Source
    kernel: Kernel | None
    other: Kernel | None
    argument: str = ""
    was: Any = None
    now: Any = None
    written: bool = False
    gone: tuple[Kernel, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """The same for the same difference between other recordings."""
        numbers = self.was if self.what == "kernels" else None
        return self.what, self.where.file, self.where.line, numbers


def compare(recorded: Recording, now: Recording) -> list[Difference]:
    """What ``recorded`` holds fast and ``now`` has otherwise, in the order of the kernels."""
    return _Comparison(recorded.tape, now.tape).run(recorded, now)


def same_kernels(a: Tape, b: Tape) -> bool:
    """Whether two tapes have the same operations in the same order."""
    return [k.op for k in a.kernels] == [k.op for k in b.kernels]


class _Comparison:
    def __init__(self, was: Tape, now: Tape) -> None:
        self.was, self.now = was, now
        self.pairs: dict[int, int] = {}  # results: buffer of the first, buffer of the second
        self.reshaped: set[int] = set()  # results of the first whose geometry is another in the second
        self.found: list[Difference] = []

    def run(self, recorded: Recording, now: Recording) -> list[Difference]:
        for kernel, other in self._aligned():
            self._compare(kernel, other)
        where = _end_of(self.was)
        for n, (a, b) in enumerate(zip(recorded.outputs, now.outputs, strict=False)):
            self._argument(None, None, where, f"output {n}", a, b, False)
        if len(recorded.outputs) != len(now.outputs):
            self.found.append(
                Difference("kernels", where, None, None, "outputs", len(recorded.outputs), len(now.outputs))
            )
        return self.found

    def _aligned(self) -> Iterator[tuple[Kernel, Kernel]]:
        a, b = self.was.kernels, self.now.kernels
        if same_kernels(self.was, self.now):
            yield from zip(a, b, strict=True)
            return
        keys = [[(k.name, k.where.file, k.where.line) for k in kernels] for kernels in (a, b)]
        for tag, i, j, m, n in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes():
            if tag == "equal":
                yield from zip(a[i:j], b[m:n], strict=True)
                continue
            first = a[i] if i < j else None
            other = b[m] if m < n else None
            where = (first or other).where  # type: ignore[union-attr]  # one of the two is there
            was, now = tuple(k.name for k in a[i:j]), tuple(k.name for k in b[m:n])
            for kernel in a[i:j]:
                self.reshaped.update(ref.buffer for ref in kernel.outputs if ref is not None)
            self.found.append(Difference("kernels", where, first, other, was=was, now=now, gone=tuple(a[i:j])))

    def _compare(self, kernel: Kernel, other: Kernel) -> None:
        names = [argument.name for argument in kernel.op._schema.arguments]
        writes = {a.name for a in kernel.op._schema.arguments if a.alias_info is not None and a.alias_info.is_write}
        mine = {**dict(zip(names, kernel.args, strict=False)), **kernel.kwargs}
        its = {**dict(zip(names, other.args, strict=False)), **other.kwargs}
        for name in {**mine, **its}:
            self._argument(kernel, other, kernel.where, name, mine.get(name), its.get(name), name in writes)
        for ref, that in zip(kernel.outputs, other.outputs, strict=False):
            if ref is not None and that is not None:
                self.pairs[ref.buffer] = that.buffer
                if _geometry(ref) != _geometry(that):
                    self.reshaped.add(ref.buffer)

    def _argument(
        self,
        kernel: Kernel | None,
        other: Kernel | None,
        where: Source,
        name: str,
        a: Any,
        b: Any,
        written: bool,
    ) -> None:
        def note(what: What) -> None:
            self.found.append(Difference(what, where, kernel, other, name, a, b, written))

        if isinstance(a, TensorRef) and isinstance(b, TensorRef):
            what = self._memory(a, b)
            if what is not None:
                note(what)
        elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
            for n, (x, y) in enumerate(zip(a, b, strict=True)):
                tensors = isinstance(x, TensorRef) or isinstance(y, TensorRef)
                if tensors:
                    self._argument(kernel, other, where, f"{name}[{n}]", x, y, written)
                elif not equal(x, y):
                    note("number")
                    return
        elif not equal(a, b):
            derived = kernel is not None and any(ref.buffer in self.reshaped for ref in kernel.reads)
            if not derived:
                note("number")

    def _memory(self, a: TensorRef, b: TensorRef) -> What | None:
        mine, its = self.was.buffers[a.buffer], self.now.buffers[b.buffer]
        if mine.opaque is not None or its.opaque is not None:
            return None if mine.opaque is its.opaque else "memory"
        if mine.kind == its.kind == "constant":
            same = bool((mine.tensor(a) == its.tensor(b)).all()) if _geometry(a) == _geometry(b) else False
            return None if same or _nan(mine, a, its, b) else "constant"
        if mine.outside and its.outside:
            if self._address(mine) != self._address(its):
                return "memory"
            return None if _geometry(a) == _geometry(b) else "view"
        if not mine.outside and not its.outside:
            if a.buffer in self.reshaped:
                return None
            if self.pairs.setdefault(a.buffer, b.buffer) != b.buffer:
                return "choice"
            return None if _geometry(a) == _geometry(b) else "view"
        if not mine.outside and self._made_by_first(its):
            return "made-once"
        return "choice" if not mine.outside else "memory"

    def _made_by_first(self, buffer: Buffer) -> bool:
        """Whether memory that the second found outside is a result of the first."""
        start, end = buffer.address, buffer.address + buffer.nbytes
        return any(
            not made.outside and made.address < end and start < made.address + made.nbytes for made in self.was.buffers
        )

    @staticmethod
    def _address(buffer: Buffer) -> tuple[int, int]:
        return buffer.address, buffer.nbytes


def _geometry(ref: TensorRef) -> tuple[Any, ...]:
    return ref.dtype, ref.size, ref.stride, ref.offset, ref.conj, ref.neg


def _nan(mine: Buffer, a: TensorRef, its: Buffer, b: TensorRef) -> bool:
    if not a.dtype.is_floating_point or _geometry(a) != _geometry(b):
        return False
    return bool(mine.tensor(a).isnan().all() and its.tensor(b).isnan().all())


def equal(a: Any, b: Any) -> bool:
    """Whether two plain values are the same; NaN is NaN."""
    if isinstance(a, torch.Generator) and isinstance(b, torch.Generator):
        return key_of(a) == key_of(b)
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # what cannot be compared is compared by identity
        return a is b


def _end_of(tape: Tape) -> Source:
    return tape.kernels[-1].where if tape.kernels else Source("<nothing recorded>", 0, "")
