"""Takes back what a capture wrote to memory outside of its pool.

A GPU runs nothing while it captures. A CPU has to run the step to learn its shapes, so whatever the step writes to
memory that others can see is saved first and put back afterwards. Of a write to chosen rows of a large cache only those
rows are saved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch._ops import OpOverload

_BY_DIMENSION = ("aten::index_copy_", "aten::index_add_", "aten::index_fill_")
_BY_SCATTER = ("aten::scatter_", "aten::scatter_add_", "aten::scatter_reduce_")
_BY_INDICES = ("aten::index_put_", "aten::_index_put_impl_")


@dataclass(frozen=True)
class Piece:
    """A part of memory that was overwritten. read, write: its content now; saved: what it was before; rows: chosen ones
    of a larger tensor."""

    read: Callable[[], Tensor]
    write: Callable[[Tensor], Any]
    saved: Tensor
    rows: bool


class Journal:
    """Saved pieces of memory, in the order in which they were overwritten."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._whole: set[tuple[int, int, torch.Size, tuple[int, ...], torch.dtype]] = set()

    def save(self, op: OpOverload, memory: Tensor, args: tuple[Any, ...]) -> None:
        """Save what ``op(*args)`` is about to overwrite in ``memory``, a plain alias of the argument that it writes."""
        name = op._schema.name
        if memory.dim() > 0 and name in _BY_DIMENSION:
            dim, index = args[1], args[2].clone()
            if index.numel() < memory.size(dim):
                flat = index.reshape(-1)
                self._keep(partial(memory.index_select, dim, flat), partial(memory.index_copy_, dim, flat))
                return
        elif memory.dim() > 0 and name in _BY_SCATTER:
            dim, index = args[1], args[2].clone()
            if index.numel() < memory.numel():
                self._keep(partial(memory.gather, dim, index), partial(memory.scatter_, dim, index))
                return
        elif name in _BY_INDICES:
            indices = [None if index is None else index.clone() for index in args[1]]
            self._keep(
                partial(torch.ops.aten.index, memory, indices), partial(torch.ops.aten.index_put_, memory, indices)
            )
            return
        self.save_whole(memory)

    def save_whole(self, memory: Tensor) -> None:
        """Save all of ``memory``."""
        key = (memory.data_ptr(), int(memory.storage_offset()), memory.size(), memory.stride(), memory.dtype)
        if key not in self._whole:
            self._whole.add(key)
            self._keep(memory.clone, memory.copy_, rows=False)

    def values(self) -> list[Tensor]:
        """A copy of what each piece holds now."""
        with torch.no_grad():
            return [piece.read() for piece in self.pieces]

    def put(self, values: list[Tensor]) -> None:
        """Write back what ``values`` returned."""
        with torch.no_grad():
            for piece, value in zip(self.pieces, values, strict=True):
                piece.write(value)

    def restore(self) -> None:
        """Put everything back, the last first."""
        with torch.no_grad():
            for piece in reversed(self.pieces):
                piece.write(piece.saved)
        self.pieces.clear()
        self._whole.clear()

    def _keep(self, read: Callable[[], Tensor], write: Callable[[Tensor], Any], rows: bool = True) -> None:
        self.pieces.append(Piece(read, write, read(), rows))
