"""A recorded graph as data: the kernels in order, and the memory they read and write.

A ``Tape`` is what a CUDA Graph holds. Its kernels have no Python objects of your model in them: an argument is either a
number that was frozen when the graph was recorded, or a place in memory (``TensorRef``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor

from onelaunch.tape.pool import Block, Pool
from onelaunch.tape.source import Source

if TYPE_CHECKING:
    from torch._ops import OpOverload

Kind = Literal["input", "weight", "state", "constant", "intermediate", "output"]
NO_MEMORY = (
    "this tape was recorded from FakeTensors: it has shapes and made-up addresses, and no memory to replay in or to "
    "read. Record the step again with real tensors."
)
KINDS: tuple[Kind, ...] = ("input", "weight", "state", "constant", "intermediate", "output")


@dataclass(frozen=True)
class TensorRef:
    """A tensor argument as a kernel knows it: which buffer, and the geometry of the view into it.

    offset and stride count elements, as PyTorch's do. A view is nothing but another geometry of the same buffer.
    """

    buffer: int
    dtype: torch.dtype
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    conj: bool = False
    neg: bool = False

    @property
    def span(self) -> tuple[int, int]:
        """First byte and one past the last, relative to the buffer's address. Empty tensors span nothing."""
        start = self.offset * self.dtype.itemsize
        if 0 in self.size:
            return start, start
        last = self.offset + sum((n - 1) * step for n, step in zip(self.size, self.stride, strict=True))
        return start, (last + 1) * self.dtype.itemsize


@dataclass(eq=False)
class Buffer:
    """A piece of memory that the graph touches.

    kind: ``input`` (made outside, only read), ``weight`` (a parameter), ``state`` (made outside and written),
    ``constant`` (a number that the host wrote down during capture), ``intermediate`` and ``output`` (in the graph's
    pool; an output still had an owner when the capture ended).
    address, nbytes: where it is. Weights that oneDNN packed have no address (0); ``opaque`` holds them.
    first_use, last_use: numbers of kernels. freed: the kernel before which its last owner let go, so that its memory
    could be used again; None where the capture ended first.
    """

    index: int
    kind: Kind
    address: int
    nbytes: int
    dtype: torch.dtype
    size: tuple[int, ...]
    storage: torch.UntypedStorage | None = field(repr=False)
    base: int = 0  # bytes from the start of the storage to the address
    first_use: int | None = None
    last_use: int | None = None
    freed: int | None = None
    opaque: Tensor | None = field(default=None, repr=False)  # memory in a library's own layout, without an address

    @property
    def outside(self) -> bool:
        """Whether the memory was there before the capture."""
        return self.kind in ("input", "weight", "state", "constant")

    def tensor(self, ref: TensorRef) -> Tensor:
        """A tensor over this memory with the geometry of ``ref``. It has no history and takes part in no autograd.

        Raises RuntimeError where the tape was recorded from FakeTensors.
        """
        if self.opaque is not None:
            return self.opaque
        if self.storage is None:
            raise RuntimeError(NO_MEMORY)
        if 0 in ref.size:
            return torch.empty_strided(ref.size, ref.stride, dtype=ref.dtype)
        return alias(self.storage, ref.dtype, self.base // ref.dtype.itemsize + ref.offset, ref)


def alias(storage: torch.UntypedStorage, dtype: torch.dtype, offset: int, ref: TensorRef) -> Tensor:
    """A plain tensor over ``storage``, whatever mode the caller is in: tensors born in inference mode cannot be written
    outside of it, and a graph may be replayed anywhere."""
    with torch.inference_mode(False), torch.no_grad():
        out = torch.empty(0, dtype=dtype).set_(storage, offset, ref.size, ref.stride)
    if ref.conj:
        torch._C._set_conj(out, True)
    if ref.neg:
        torch._C._set_neg(out, True)
    return out


@dataclass(eq=False)
class Kernel:
    """One recorded operation.

    args, kwargs: as PyTorch was called, with a ``TensorRef`` for each tensor. outputs: one entry for each tensor that
    the operator returns, None where that is empty or only another view of an argument. reads, writes: the places it
    reads and writes. stream: number of the stream.
    """

    index: int
    op: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[TensorRef | None, ...]
    reads: tuple[TensorRef, ...]
    writes: tuple[TensorRef, ...]
    where: Source
    stream: int = 0

    @property
    def name(self) -> str:
        """Such as ``aten::add.Tensor``."""
        return str(self.op.name())

    def frozen(self) -> Iterator[tuple[str, Any]]:
        """Name and value of each argument that is a plain value: all replays use what it was at capture."""
        names = [argument.name for argument in self.op._schema.arguments]
        for name, value in [*zip(names, self.args, strict=False), *self.kwargs.items()]:
            if any(isinstance(leaf, (bool, int, float, complex, str)) for leaf in leaves(value)):
                yield name, value


class Frozen(NamedTuple):
    """A plain value that a kernel was recorded with."""

    kernel: int
    op: str
    name: str
    value: Any
    where: Source


@dataclass(eq=False)
class Tape:
    """Kernels in the order they were recorded, the buffers they touch, and the pool their results live in.

    shapes_only: recorded from FakeTensors, to be read and not replayed.
    """

    kernels: list[Kernel]
    buffers: list[Buffer]
    pool: Pool
    hidden: list[Block] = field(default_factory=list, repr=False)
    shapes_only: bool = False

    def require_memory(self) -> None:
        """Raise RuntimeError where the tape was recorded from FakeTensors."""
        if self.shapes_only:
            raise RuntimeError(NO_MEMORY)

    def reveal(self) -> None:
        """Note that a replay is making the outputs, which hold garbage until then."""
        while self.hidden:
            self.hidden.pop().hidden = None

    def tensor(self, ref: TensorRef) -> Tensor:
        """The memory behind ``ref``, as it is now."""
        return self.buffers[ref.buffer].tensor(ref)

    def frozen(self) -> list[Frozen]:
        """Every plain value that was frozen, kernel by kernel."""
        return [Frozen(k.index, k.name, name, value, k.where) for k in self.kernels for name, value in k.frozen()]

    def dag(self) -> list[tuple[int, ...]]:
        """For each kernel the earlier kernels that it must come after, because of memory that one of the two writes.

        Memory counts by address, so a buffer that reuses another's place comes after it. A strided view counts as all
        bytes between its first and its last. Dependencies that others imply may be left out.
        """
        regions = self._regions()
        history: list[list[tuple[int, int, int, bool]]] = [[] for _ in regions]  # start, end, kernel, writes
        result = []
        for kernel in self.kernels:
            before: set[int] = set()
            accesses = []
            for ref, writes in [(ref, False) for ref in kernel.reads] + [(ref, True) for ref in kernel.writes]:
                if self.buffers[ref.buffer].opaque is not None:  # only ever read
                    continue
                start, end = self._span(ref)
                if start < end:
                    accesses.append((history[regions[ref.buffer]], start, end, writes))
            for past, start, end, writes in accesses:
                for begin, stop, other, wrote in past:
                    if begin < end and start < stop and (writes or wrote):
                        before.add(other)
            for past, start, end, writes in accesses:
                if writes:  # whoever touches these bytes later comes after this kernel, and so after those
                    past[:] = [entry for entry in past if entry[0] < start or entry[1] > end]
                past.append((start, end, kernel.index, writes))
            result.append(tuple(sorted(before)))
        return result

    def overwrites(self, kept: Tape) -> list[Buffer]:
        """The outputs of ``kept`` that a replay of this tape overwrites: its own, and those of graphs in the same pool
        whose memory was free when this one was recorded."""
        writes = {self._span(ref) for kernel in self.kernels for ref in kernel.writes}
        found = []
        for buffer in kept.buffers:
            start, end = buffer.address, buffer.address + buffer.nbytes
            if buffer.kind == "output" and any(begin < end and start < stop for begin, stop in writes):
                found.append(buffer)
        return found

    def _span(self, ref: TensorRef) -> tuple[int, int]:
        """Address of a view's first byte, and one past its last."""
        address = self.buffers[ref.buffer].address
        start, end = ref.span
        return address + start, address + end

    def _regions(self) -> list[int]:
        """For each buffer a number; buffers whose addresses overlap, also by way of others, have the same."""
        regions = [0] * len(self.buffers)
        region, reached = -1, 0
        for buffer in sorted(self.buffers, key=lambda buffer: buffer.address):
            if buffer.address >= reached:
                region += 1
            regions[buffer.index] = region
            reached = max(reached, buffer.address + buffer.nbytes)
        return regions

    def summary(self) -> str:
        """A few lines: how many kernels of which kind, what memory, what was frozen."""
        counts = Counter(kernel.name for kernel in self.kernels)
        lines = [f"{len(self.kernels)} kernels of {len(counts)} kinds"]
        lines += [
            f"  {count:5d}  {name}" for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ]
        lines.append(f"{len(self.buffers)} buffers")
        for kind in KINDS:
            of_kind = [buffer for buffer in self.buffers if buffer.kind == kind]
            if of_kind:
                packed = sum(buffer.opaque is not None for buffer in of_kind)
                note = f", {packed} of them packed by oneDNN" if packed else ""
                lines.append(f"  {len(of_kind):5d}  {kind}, {sum(b.nbytes for b in of_kind):,} bytes{note}")
        lines.append(f"pool: {self.pool.peak_bytes:,} bytes at the peak, {self.pool.naive_bytes:,} without reuse")
        lines.append(f"{len(self.frozen())} frozen values")
        return "\n".join(lines)


def leaves(value: Any) -> list[Any]:
    """The items of nested lists and tuples, which is all the nesting that an operator's arguments have."""
    if not isinstance(value, (list, tuple)):
        return [value]
    found = []
    for item in value:
        if isinstance(item, (list, tuple)):
            found += leaves(item)
        else:
            found.append(item)
    return found


def replace(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """``value`` with ``change`` applied to every item of type ``kind`` in its nested lists and tuples."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, (list, tuple)):
        items = [replace(item, kind, change) for item in value]
        if isinstance(value, list):
            return items
        return tuple(items) if type(value) is tuple else type(value)(items)
    return value
