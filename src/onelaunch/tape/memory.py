"""Which piece of memory a tensor stands on, while a capture runs: the graph's own, in its pool, or somebody else's.

What the step makes is moved into the pool. What it finds becomes a buffer when it is first met, and what it overwrites
there is put back at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from onelaunch.tape.operators import facts_of
from onelaunch.tape.pool import Block, Owner, Pool, block_of
from onelaunch.tape.tape import Buffer, Kernel, Kind, TensorRef
from onelaunch.tape.undo import Journal

if TYPE_CHECKING:
    from torch._ops import OpOverload


class Memory:
    """The buffers of one capture."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.buffers: list[Buffer] = []
        self._now = 0  # number of the next kernel
        self._own: list[tuple[Buffer, Block]] = []
        self._known: dict[int, tuple[Buffer, Owner | None]] = {}  # by storage, with what dies with pool memory
        self._opaque: dict[int, Buffer] = {}  # by identity; the buffer keeps the tensor alive
        self._parameters: set[int] = set()  # storages
        self._journal = Journal()

    def note_parameter(self, parameter: nn.Parameter) -> None:
        """Remember whose memory this is: operations see plain tensors."""
        if parameter.layout is torch.strided:
            self._parameters.add(parameter.untyped_storage()._cdata)

    def note_use(self, kernel: Kernel) -> None:
        for ref in (*kernel.reads, *kernel.writes):
            buffer = self.buffers[ref.buffer]
            buffer.first_use = kernel.index if buffer.first_use is None else buffer.first_use
            buffer.last_use = kernel.index
        self._now = kernel.index + 1

    def ref(self, tensor: Tensor) -> TensorRef:
        """The place of a tensor, whose memory becomes a buffer if it is not one yet."""
        buffer = self.buffer(tensor)
        if buffer.opaque is not None:
            return TensorRef(buffer.index, tensor.dtype, tuple(tensor.size()), (), 0)
        return TensorRef(
            buffer.index,
            tensor.dtype,
            tuple(tensor.size()),
            tensor.stride(),
            int(tensor.storage_offset()),
            tensor.is_conj(),
            tensor.is_neg(),
        )

    def buffer(self, tensor: Tensor) -> Buffer:
        """The buffer that a tensor's memory is; memory from outside becomes one when it is first met."""
        if tensor.layout is not torch.strided:
            buffer = self._opaque.get(id(tensor))
            if buffer is None:
                buffer = self._add("weight", tensor, 0, 0, None, 0)
                buffer.opaque = tensor
                self._opaque[id(tensor)] = buffer
            return buffer
        storage = tensor.untyped_storage()
        known = self._known.get(storage._cdata)
        if known is not None and (known[1] is None or known[1]() is not None):
            return known[0]
        # Memory of another graph's pool is referred to by its segment, so that this graph does not keep it in use.
        block = block_of(storage)
        kind: Kind = "weight" if isinstance(tensor, nn.Parameter) or storage._cdata in self._parameters else "input"
        if block is None:
            buffer = self._add(kind, tensor, storage.data_ptr(), storage.nbytes(), storage, 0)
        else:
            base = block.segment.memory.untyped_storage()
            buffer = self._add(kind, tensor, block.address, storage.nbytes(), base, block.offset)
            if block.hidden is not None:  # numbers that no replay has made yet: show true ones while this capture runs
                memory, true = block.hidden
                self._journal.save_whole(memory)
                memory.copy_(true)
        self._known[storage._cdata] = (buffer, None if block is None else block.owner)
        return buffer

    def allocate(self, op: OpOverload, tensor: Tensor, stream: int) -> Tensor:
        """Pool memory (uint8) with the content of a fresh result."""
        storage = tensor.untyped_storage()
        block, memory = self.pool.allocate(storage.nbytes(), stream)
        if not facts_of(op).allocates:
            memory.copy_(torch.empty(0, dtype=torch.uint8).set_(storage))
        elif not tensor.dtype.is_floating_point:
            memory.zero_()  # what was there before may be used as an index while the capture runs
        base = block.segment.memory.untyped_storage()
        buffer = self._add("intermediate", tensor, block.address, storage.nbytes(), base, block.offset)

        def freed() -> None:
            buffer.freed = self._now

        block.on_free = freed
        self._own.append((buffer, block))
        self._known[memory.untyped_storage()._cdata] = (buffer, block.owner)
        return memory

    def before_write(self, op: OpOverload, tensor: Tensor, args: tuple[Any, ...]) -> None:
        """Save what ``op(*args)`` is about to overwrite in ``tensor``, if that is not the graph's own."""
        buffer = self.buffer(tensor)
        if buffer.outside:
            buffer.kind = "state"
            if tensor.numel():
                self._journal.save(op, buffer.tensor(self.ref(tensor)), args)

    def settle(self, failed: bool) -> list[Block]:
        """End the capture: put back what was overwritten, and hide the outputs until a replay makes them.

        Returns the blocks whose true content is kept.
        """
        self._journal.restore()
        self._known.clear()
        self.pool.collect()
        for buffer, block in self._own:
            if block.alive and buffer.freed is None:
                buffer.kind = "output"
                if not failed:
                    hide(buffer, block)
            block.on_free = None
        return [block for _, block in self._own if block.hidden]

    def _add(
        self, kind: Kind, tensor: Tensor, address: int, nbytes: int, storage: torch.UntypedStorage | None, base: int
    ) -> Buffer:
        shape = tuple(tensor.size())
        buffer = Buffer(len(self.buffers), kind, address, nbytes, tensor.dtype, shape, storage, base)
        self.buffers.append(buffer)
        return buffer


def hide(buffer: Buffer, block: Block) -> None:
    """Fill an output with garbage until its graph is replayed: NaN, or the lowest number that the type has.

    Whole numbers may be indices, and a later capture may run with them, so their true values are kept for it.
    """
    dtype = buffer.dtype
    ref = TensorRef(buffer.index, dtype, (buffer.nbytes // dtype.itemsize,), (1,), 0)
    memory = buffer.tensor(ref)
    if dtype.is_floating_point or dtype.is_complex:
        memory.view(torch.uint8).fill_(255)  # all ones is NaN in every floating point format here
        return
    block.hidden = (memory, memory.clone())
    if dtype is torch.bool:
        memory.fill_(True)
    else:
        info = torch.iinfo(dtype)
        memory.fill_(info.min or info.max)
