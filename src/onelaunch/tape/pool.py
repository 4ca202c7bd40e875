"""A graph's private memory, handed out and taken back like the caching allocator of ``torch.cuda``.

Memory comes in segments that never merge: 2 MB for requests up to 1 MB, 20 MB up to 10 MB, above that as many times
2 MB as needed. A block is free again as soon as the last tensor on it is gone, and the next request takes it. That is
why a recorded address can serve several tensors of one step, and why graphs that share a pool overwrite each other's
results.

The same plan can be made for tensors without memory (``simulate``): the addresses are then made up.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import torch
from torch import Tensor

SMALL_REQUEST = 1 << 20
SMALL_SEGMENT = 2 << 20
MEDIUM_REQUEST = 10 << 20
MEDIUM_SEGMENT = 20 << 20
ALIGNMENT = 512

_blocks: dict[int, Block] = {}  # by storage: the pool block that a tensor's storage stands on
_addresses: dict[int, int] = {}  # by storage: the made-up address of memory that is none
_numbers = count(1)
_next_address = 1 << 44


def block_of(storage: torch.UntypedStorage) -> Block | None:
    """The pool block under a tensor's storage, or None where it is ordinary memory."""
    return _blocks.get(storage._cdata)


def simulated_address(storage: torch.UntypedStorage) -> int:
    """The made-up address of a storage without memory: the same as long as it lives, and nobody else's."""
    key = storage._cdata
    if key not in _addresses:
        _addresses[key] = _make_up(storage.nbytes(), ALIGNMENT)
        weakref.finalize(storage, _addresses.pop, key)
    return _addresses[key]


def _make_up(nbytes: int, alignment: int) -> int:
    global _next_address
    address = -(-_next_address // alignment) * alignment
    _next_address = address + max(nbytes, 1)
    return address


@dataclass(eq=False)
class Segment:
    """A contiguous piece of memory, cut into blocks in the order of their addresses. simulated: there is no memory."""

    nbytes: int
    small: bool
    stream: int
    simulated: bool
    address: int = field(init=False)
    memory: Tensor | None = field(init=False, repr=False, default=None)  # uint8
    blocks: list[Block] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.simulated:
            self.address = _make_up(self.nbytes, SMALL_SEGMENT)
        else:
            with torch.inference_mode(False):
                self.memory = torch.empty(self.nbytes, dtype=torch.uint8)
            self.address = self.memory.data_ptr()
        self.blocks = [Block(self, 0, self.nbytes)]


@dataclass(eq=False)
class Block:
    """Part of a segment. While a tensor stands on it, it is in use."""

    segment: Segment
    offset: int
    nbytes: int
    free: bool = True
    owner: weakref.ref[torch.UntypedStorage] | None = field(default=None, repr=False)
    on_free: Callable[[], None] | None = field(default=None, repr=False)
    hidden: tuple[Tensor, Tensor] | None = field(default=None, repr=False)  # see hide() in memory.py

    @property
    def alive(self) -> bool:
        """Whether a tensor stands on it."""
        return self.owner is not None and self.owner() is not None

    @property
    def address(self) -> int:
        return self.segment.address + self.offset


class Pool:
    """The memory of one graph, or of several that share it. All sizes are in bytes.

    peak_bytes: the most that was in use at one time. naive_bytes: what all requests together would have taken, had
    nothing been used twice. reserved_bytes: the segments.
    """

    def __init__(self) -> None:
        self.users: weakref.WeakSet[Any] = weakref.WeakSet()  # tapes
        self.segments: list[Segment] = []
        self._number = next(_numbers)
        self._wanted = True
        self.used_bytes = self.peak_bytes = self.naive_bytes = 0
        self._dead: list[Block] = []

    @property
    def handle(self) -> PoolHandle:
        return PoolHandle(self, self._number)

    @property
    def reserved_bytes(self) -> int:
        self.collect()
        return sum(segment.nbytes for segment in self.segments)

    @property
    def simulated(self) -> bool | None:
        """Whether this is a plan without memory; None while the pool is empty."""
        return self.segments[0].simulated if self.segments else None

    def allocate(self, nbytes: int, stream: int = 0) -> tuple[Block, Tensor]:
        """A block for ``nbytes`` and a uint8 tensor on it. The block is taken back when the tensor's storage is gone.

        Blocks are shared only by requests of the same stream, as on a GPU.
        """
        block = self._take(nbytes, stream, simulated=False)
        assert block.segment.memory is not None
        # A storage of its own, so that its end is the end of the tensors on this block.
        memory = torch.from_numpy(block.segment.memory.numpy()[block.offset : block.offset + max(nbytes, 1)])
        self._watch(block, memory.untyped_storage())
        return block, memory

    def simulate(self, storage: torch.UntypedStorage, stream: int = 0) -> Block:
        """The block that ``storage`` would take if it had memory. It is taken back when the storage is gone."""
        block = self._take(int(storage.nbytes()), stream, simulated=True)
        self._watch(block, storage)
        return block

    def collect(self) -> None:
        """Take back the blocks whose tensors are gone."""
        while self._dead:
            block = self._dead.pop()
            block.free, block.owner, block.hidden = True, None, None
            self.used_bytes -= block.nbytes
            if block.on_free is not None:
                block.on_free()
                block.on_free = None
            self._merge(block)
        if not self._wanted:
            for segment in [segment for segment in self.segments if all(block.free for block in segment.blocks)]:
                self.segments.remove(segment)
                segment.blocks.clear()  # they refer to it in turn, and would keep the memory until a garbage collection

    def give_back(self) -> None:
        """Let go of segments as their tensors go, unless a graph still needs the pool. A capture takes it up again."""
        self._wanted = bool(self.users or self.simulated)  # a plan has nothing to give back, and stays to be read
        self.collect()

    def _take(self, nbytes: int, stream: int, simulated: bool) -> Block:
        if self.simulated is (not simulated):
            kinds = ("memory", "shapes only")
            raise RuntimeError(
                f"a pool with {kinds[not simulated]} was given to a capture with {kinds[simulated]}: graphs of "
                "FakeTensors and graphs with memory cannot share a pool. Give each kind its own."
            )
        self._wanted = True
        self.collect()
        rounded = max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
        block = self._best_fit(rounded, stream, simulated)
        self._split(block, rounded)
        block.free = False
        self.used_bytes += block.nbytes
        self.naive_bytes += block.nbytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return block

    def _watch(self, block: Block, storage: torch.UntypedStorage) -> None:
        key, dead = storage._cdata, self._dead

        def gone(_: object) -> None:  # at any time, in the middle of a garbage collection: only leave a note
            _blocks.pop(key, None)
            dead.append(block)

        _blocks[key] = block
        block.owner = weakref.ref(storage, gone)

    def _best_fit(self, nbytes: int, stream: int, simulated: bool) -> Block:
        small = nbytes <= SMALL_REQUEST
        fitting = [
            block
            for segment in self.segments
            if segment.small == small and segment.stream == stream
            for block in segment.blocks
            if block.free and block.nbytes >= nbytes
        ]
        if fitting:
            return min(fitting, key=lambda block: block.nbytes)
        if small:
            size = SMALL_SEGMENT
        elif nbytes < MEDIUM_REQUEST:
            size = MEDIUM_SEGMENT
        else:
            size = -(-nbytes // SMALL_SEGMENT) * SMALL_SEGMENT
        self.segments.append(Segment(size, small, stream, simulated))
        return self.segments[-1].blocks[0]

    @staticmethod
    def _split(block: Block, nbytes: int) -> None:
        rest = block.nbytes - nbytes
        if rest >= ALIGNMENT if block.segment.small else rest > SMALL_REQUEST:
            blocks = block.segment.blocks
            blocks.insert(blocks.index(block) + 1, Block(block.segment, block.offset + nbytes, rest))
            block.nbytes = nbytes

    @staticmethod
    def _merge(block: Block) -> None:
        blocks = block.segment.blocks
        at = blocks.index(block)
        if at + 1 < len(blocks) and blocks[at + 1].free:
            block.nbytes += blocks.pop(at + 1).nbytes
        if at > 0 and blocks[at - 1].free:
            blocks[at - 1].nbytes += blocks.pop(at).nbytes


class PoolHandle(tuple[int, int]):
    """What ``graph_pool_handle()`` and ``CUDAGraph.pool()`` return: a pair of numbers, as torch's, for ``pool=``.

    Beyond torch's it tells the sizes of its pool.
    """

    memory: Pool

    def __new__(cls, memory: Pool, number: int) -> PoolHandle:
        handle = super().__new__(cls, (0, number))
        handle.memory = memory
        return handle

    @property
    def peak_bytes(self) -> int:
        return self.memory.peak_bytes

    @property
    def naive_bytes(self) -> int:
        return self.memory.naive_bytes

    @property
    def reserved_bytes(self) -> int:
        return self.memory.reserved_bytes
