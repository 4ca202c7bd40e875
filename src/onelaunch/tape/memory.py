"""Which piece of memory a tensor stands on, while a capture runs: the graph's own, in its pool, or somebody else's.

What the step makes is moved into the pool. What it finds becomes a buffer when it is first met, and what it overwrites
there is put back at the end. FakeTensors have shapes and no memory, so for them only the plan is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from onelaunch.tape.operators import facts_of
from onelaunch.tape.pool import Block, Pool, block_of, simulated_address
from onelaunch.tape.tape import Buffer, Kernel, Kind, TensorRef
from onelaunch.tape.undo import Journal

if TYPE_CHECKING:
    from torch._ops import OpOverload


class Memory:
    """The buffers of one capture. shapes_only: whether FakeTensors were met."""

    def __init__(self, pool: Pool, meet: Callable[[Buffer, Tensor], None] | None = None) -> None:
        self.pool, self._meet = pool, meet
        self.buffers: list[Buffer] = []
        self.shapes_only = False
        self._now = 0  # number of the next kernel
        self._own: list[tuple[Buffer, Block]] = []
        self._known: dict[int, tuple[Buffer, Block | None]] = {}  # by storage
        self._opaque: dict[int, Buffer] = {}  # by identity; the buffer keeps the tensor alive
        self._kinds: dict[int, Kind] = {}  # by storage, where it is not "input"
        self._kept: list[torch.UntypedStorage] = []  # so that none of the above comes to mean another storage
        self.journal = Journal()  # of what the step overwrites outside
        self._revealed = Journal()  # of other graphs' outputs that are shown to this capture

    def note_kind(self, tensor: Tensor, kind: Kind) -> None:
        """Remember what memory from outside is: a kernel may meet no more than a view of it."""
        if tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            if storage._cdata not in self._kinds:
                self._kinds[storage._cdata] = kind
                self._kept.append(storage)

    def origin(self, tensor: Tensor) -> Literal["host", "graph", "unknown"]:
        """Where a GPU program would have this tensor, so far as it can be told here."""
        if tensor.layout is not torch.strided:
            return "unknown"
        storage = tensor.untyped_storage()
        if self._kinds.get(storage._cdata) == "constant":
            return "host"
        buffer, block = self._known.get(storage._cdata, (None, None))
        made_here = buffer is not None and not buffer.outside and block is block_of(storage)
        return "graph" if made_here else "unknown"

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
                buffer = self._add("weight", tensor, 0, tensor.nbytes, None, 0)
                buffer.opaque = tensor
                self._opaque[id(tensor)] = buffer
            return buffer
        storage = tensor.untyped_storage()
        # Memory of another graph's pool is referred to by its segment, so that this graph does not keep it in use.
        block = block_of(storage)
        known = self._known.get(storage._cdata)
        if known is not None and known[1] is block:
            return known[0]
        default: Kind = "weight" if isinstance(tensor, nn.Parameter) else "input"
        kind = self._kinds.get(storage._cdata, default)
        if block is not None:
            buffer = self._add_block(kind, tensor, block)
            if block.hidden is not None:  # numbers that no replay has made yet: show true ones while this capture runs
                memory, true = block.hidden
                self._revealed.save_whole(memory)
                memory.copy_(true)
        elif isinstance(tensor, FakeTensor):
            self.shapes_only = True
            self._kept.append(storage)
            buffer = self._add(kind, tensor, simulated_address(storage), int(storage.nbytes()), None, 0)
        else:
            buffer = self._add(kind, tensor, storage.data_ptr(), storage.nbytes(), storage, 0)
            if self._meet is not None:
                self._meet(buffer, tensor)
        self._known[storage._cdata] = (buffer, block)
        return buffer

    def show(self, tensor: Tensor) -> None:
        """Let an operation that is about to run read true numbers where only a replay of another graph makes them."""
        block = block_of(tensor.untyped_storage()) if tensor.layout is torch.strided else None
        if block is not None and block.hidden is not None:
            self.buffer(tensor)

    def allocate(self, op: OpOverload, tensor: Tensor, stream: int) -> torch.UntypedStorage:
        """Pool memory with the content of a fresh result. A FakeTensor has none and stays on its own storage."""
        storage = tensor.untyped_storage()
        if isinstance(tensor, FakeTensor):
            self.shapes_only = True
            block = self.pool.simulate(storage, stream)
        else:
            block, memory = self.pool.allocate(storage.nbytes(), stream)
            if tensor._is_zerotensor():  # zeros that autograd keeps without memory
                memory.zero_()
            elif not facts_of(op).allocates:
                memory.copy_(torch.empty(0, dtype=torch.uint8).set_(storage))
            elif not tensor.dtype.is_floating_point:
                memory.zero_()  # what was there before may be used as an index while the capture runs
            storage = memory.untyped_storage()
        buffer = self._add_block("intermediate", tensor, block)

        def freed() -> None:
            buffer.freed = self._now

        block.on_free = freed
        self._own.append((buffer, block))
        self._known[storage._cdata] = (buffer, block)
        return storage

    def move_to_pool(self, op: OpOverload, tensor: Tensor, stream: int) -> None:
        """Put ``tensor`` itself, with its content, on pool memory: it has just outgrown what it stood on."""
        storage = self.allocate(op, tensor, stream)
        if storage is not tensor.untyped_storage() and not isinstance(tensor, FakeTensor):
            with torch.no_grad():
                tensor.set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())

    def before_write(self, op: OpOverload, tensor: Tensor, args: tuple[Any, ...]) -> None:
        """Save what ``op(*args)`` is about to overwrite in ``tensor``, if that is not the graph's own."""
        if tensor.layout is torch.strided and tensor.untyped_storage().nbytes() == 0:
            return  # nothing yet: it will grow
        buffer = self.buffer(tensor)
        if buffer.outside:
            buffer.kind = "state"
            if isinstance(tensor, FakeTensor):
                return
            if tensor.numel():
                self.journal.save(op, buffer.tensor(self.ref(tensor)), args)
            elif "out" in op._overloadname:  # it may take as much of its memory as it needs
                whole = TensorRef(buffer.index, torch.uint8, (buffer.nbytes,), (1,), 0)
                self.journal.save_whole(buffer.tensor(whole))

    def settle(self, failed: bool) -> list[Block]:
        """End the capture: put back what was overwritten, and hide the outputs until a replay makes them.

        Returns the blocks whose true content is kept.
        """
        self.journal.restore()
        self._revealed.restore()
        self._known.clear()
        self._kept.clear()
        self.pool.collect()
        for buffer, block in self._own:
            if block.alive and buffer.freed is None:
                buffer.kind = "output"
                if not failed and not block.segment.simulated:
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

    def _add_block(self, kind: Kind, tensor: Tensor, block: Block) -> Buffer:
        memory = block.segment.memory
        base = None if memory is None else memory.untyped_storage()
        return self._add(kind, tensor, block.address, int(tensor.untyped_storage().nbytes()), base, block.offset)


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
