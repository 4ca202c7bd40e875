"""Replays a tape for the sanitizer: what it overwrites outside can be taken back, and memory that is gone is not read.

On a GPU a replay reads an address whoever owns it by now. Here memory without an owner is replaced by garbage.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from onelaunch.tape import Buffer, Kernel, Tape
from onelaunch.tape.lowering import lower
from onelaunch.tape.replay import plain_modes, python_call
from onelaunch.tape.tape import TensorRef, alias, replace
from onelaunch.tape.undo import Journal


class Playback:
    """One tape. watch: let go of the memory that it found outside, so that its owners alone keep it. Without it memory
    stays where it is, and what a kernel is called with is made once for all runs."""

    def __init__(self, tape: Tape, watch: bool = True) -> None:
        self.tape = tape
        self._watched: dict[int, weakref.ref[torch.UntypedStorage]] = {}  # by buffer
        self._bound: dict[int, torch.UntypedStorage] = {}  # by buffer, for one replay
        self._spare: dict[int, torch.UntypedStorage] = {}
        self.failed: tuple[Kernel, Exception] | None = None
        self._calls: list[Callable[[], None]] | None = None
        for buffer in tape.buffers:
            owned = buffer.storage is not None and buffer.outside and buffer.kind != "constant"
            if watch and owned and buffer.opaque is None and buffer.storage is not None:
                self._watched[buffer.index] = weakref.ref(buffer.storage)
                buffer.storage = None

    def owned(self, buffer: Buffer) -> torch.UntypedStorage | None:
        """The memory of a buffer from outside, if it still has an owner and lies where it lay."""
        return self._storage(buffer) if buffer.index in self._watched else None

    def bind(self, borrow: Tape) -> None:
        """Find the memory for the next replay. borrow: whose memory to use where an address of numpy's is read."""
        foreign = {
            other.address: other.storage
            for other in borrow.buffers
            if other.storage is not None and other.outside and not other.storage.resizable()
        }
        self._bound.clear()
        for buffer in self.tape.buffers:
            if buffer.index not in self._watched:
                continue
            storage = self._storage(buffer)
            if storage is None:
                storage = foreign.get(buffer.address)
            if storage is not None and storage.nbytes() >= buffer.base + buffer.nbytes:
                self._bound[buffer.index] = storage

    def missing(self, buffer: Buffer) -> bool:
        """Whether ``bind`` found no memory at a buffer's address."""
        return buffer.index in self._watched and buffer.index not in self._bound

    def release(self) -> None:
        """Let go of the memory again."""
        self._bound.clear()

    def tensor(self, ref: TensorRef) -> Tensor:
        """The memory behind ``ref``, or garbage where there is none any more."""
        buffer = self.tape.buffers[ref.buffer]
        if buffer.index not in self._watched:
            return buffer.tensor(ref)
        if 0 in ref.size:
            return torch.empty_strided(ref.size, ref.stride, dtype=ref.dtype)
        storage = self._bound.get(buffer.index)
        if storage is None:
            storage = self._spare.get(buffer.index)
        if storage is None:
            storage = self._spare[buffer.index] = garbage(buffer)
        return alias(storage, ref.dtype, buffer.base // ref.dtype.itemsize + ref.offset, ref)

    def run(self, look: Callable[[Kernel], None] | None = None) -> Journal:
        """Issue the kernels. Returns what takes back their effects outside. look: called after each kernel.

        A kernel that raises ends the run; ``failed`` has it then.
        """
        journal = Journal()
        self.failed = None
        self.tape.reveal()
        if self._calls is None and not self._watched:
            self._calls = [python_call(lower(kernel), self.tensor) for kernel in self.tape.kernels]
        with plain_modes():
            for number, kernel in enumerate(self.tape.kernels):
                try:
                    self._save(kernel, journal)
                    call = python_call(lower(kernel), self.tensor) if self._calls is None else self._calls[number]
                    call()
                except (RuntimeError, IndexError, ValueError) as error:
                    self.failed = kernel, error
                    break
                if look is not None:
                    look(kernel)
        return journal

    def _save(self, kernel: Kernel, journal: Journal) -> None:
        made = {id(ref) for ref in kernel.outputs if ref is not None}
        for ref in kernel.writes:
            if id(ref) not in made and 0 not in ref.size and self.tape.buffers[ref.buffer].outside:
                args = replace(kernel.args, TensorRef, self.tensor)
                journal.save(kernel.op, self.tensor(ref), args)

    def _storage(self, buffer: Buffer) -> torch.UntypedStorage | None:
        storage = self._watched[buffer.index]()
        if storage is None or storage.data_ptr() + buffer.base != buffer.address:  # gone, or moved by resize_()
            return None
        return storage


def garbage(buffer: Buffer) -> torch.UntypedStorage:
    """Memory as large as a buffer's, with what a GPU might have put there: NaN, or zeros where numbers may be "
    "indices."""
    dtype = buffer.dtype
    value: Any = torch.nan if dtype.is_floating_point or dtype.is_complex else 0
    return torch.full((-(-buffer.nbytes // dtype.itemsize),), value, dtype=dtype).untyped_storage()
