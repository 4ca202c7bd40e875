"""A graph's private memory, handed out and taken back like the caching allocator of ``torch.cuda``.

Memory comes in segments that never merge: 2 MB for requests up to 1 MB, 20 MB up to 10 MB, above that as many times
2 MB as needed. A block is free again as soon as the last tensor on it is gone, and the next request takes it. That is
why a recorded address can serve several tensors of one step, and why graphs that share a pool overwrite each other's
results.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

SMALL_REQUEST = 1 << 20
SMALL_SEGMENT = 2 << 20
MEDIUM_REQUEST = 10 << 20
MEDIUM_SEGMENT = 20 << 20
ALIGNMENT = 512

Owner: TypeAlias = "weakref.ref[np.ndarray]"  # of the array under one tensor on a block; gone with its storage

# By storage: the pool block that it stands on, and since when: the addresses of both are used again.
_blocks: dict[int, tuple[Block, Owner]] = {}
_numbers = count(1)


def block_of(storage: torch.UntypedStorage) -> Block | None:
    """The pool block under a tensor's storage, or None where it is ordinary memory."""
    block, owner = _blocks.get(storage._cdata, (None, None))
    return block if owner is not None and owner() is not None else None


@dataclass(eq=False)
class Segment:
    """A contiguous piece of memory, cut into blocks in the order of their addresses."""

    nbytes: int
    small: bool
    stream: int
    memory: Tensor = field(init=False, repr=False)  # uint8
    blocks: list[Block] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        with torch.inference_mode(False):
            self.memory = torch.empty(self.nbytes, dtype=torch.uint8)
        self.array = self.memory.numpy()
        self.blocks = [Block(self, 0, self.nbytes)]

    @property
    def address(self) -> int:
        return self.memory.data_ptr()


@dataclass(eq=False)
class Block:
    """Part of a segment. While a tensor stands on it, it is in use."""

    segment: Segment
    offset: int
    nbytes: int
    free: bool = True
    owner: Owner | None = field(default=None, repr=False)
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
        self.handle = PoolHandle(self, next(_numbers))
        self.segments: list[Segment] = []
        self.used_bytes = self.peak_bytes = self.naive_bytes = 0
        self._dead: list[Block] = []

    @property
    def reserved_bytes(self) -> int:
        return sum(segment.nbytes for segment in self.segments)

    def allocate(self, nbytes: int, stream: int = 0) -> tuple[Block, Tensor]:
        """A block for ``nbytes`` and a uint8 tensor on it. The block is taken back when the tensor's storage is gone.

        Blocks are shared only by requests of the same stream, as on a GPU.
        """
        self.collect()
        rounded = max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
        block = self._best_fit(rounded, stream)
        self._split(block, rounded)
        block.free = False
        self.used_bytes += block.nbytes
        self.naive_bytes += block.nbytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        # The storage keeps this array alive and nothing else does, so its end is the end of the storage. Callbacks may
        # come at any time (garbage collection): they only leave a note.
        array = block.segment.array[block.offset : block.offset + max(nbytes, 1)]
        dead = self._dead
        block.owner = weakref.ref(array, lambda _: dead.append(block))
        memory = torch.from_numpy(array)
        _blocks[memory.untyped_storage()._cdata] = block, block.owner
        return block, memory

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

    def _best_fit(self, nbytes: int, stream: int) -> Block:
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
        self.segments.append(Segment(size, small, stream))
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
