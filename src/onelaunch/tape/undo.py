"""Takes back what a capture wrote to memory outside of its pool.

A GPU runs nothing while it captures. A CPU has to run the step to learn its shapes, so whatever the step writes to
memory that others can see is saved first and put back afterwards. Of a write to chosen rows of a large cache only those
rows are saved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch._ops import OpOverload

_BY_DIMENSION = ("aten::index_copy_", "aten::index_add_", "aten::index_fill_")
_BY_SCATTER = ("aten::scatter_", "aten::scatter_add_", "aten::scatter_reduce_")
_BY_INDICES = ("aten::index_put_", "aten::_index_put_impl_")


class Journal:
    """Saved pieces of memory, in the order in which they were overwritten."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []
        self._whole: set[tuple[int, int, torch.Size, tuple[int, ...], torch.dtype]] = set()

    def save(self, op: OpOverload, memory: Tensor, args: tuple[Any, ...]) -> None:
        """Save what ``op(*args)`` is about to overwrite in ``memory``, a plain alias of the argument that it writes."""
        name = op._schema.name
        if memory.dim() > 0 and name in _BY_DIMENSION:
            dim, index = args[1], args[2].clone()
            if index.numel() < memory.size(dim):
                rows = memory.index_select(dim, index)
                self._undo.append(lambda: memory.index_copy_(dim, index.reshape(-1), rows))
                return
        elif memory.dim() > 0 and name in _BY_SCATTER:
            dim, index = args[1], args[2].clone()
            if index.numel() < memory.numel():
                values = memory.gather(dim, index)
                self._undo.append(lambda: memory.scatter_(dim, index, values))
                return
        elif name in _BY_INDICES:
            indices = [None if index is None else index.clone() for index in args[1]]
            chosen = torch.ops.aten.index(memory, indices)
            self._undo.append(lambda: torch.ops.aten.index_put_(memory, indices, chosen))
            return
        self.save_whole(memory)

    def save_whole(self, memory: Tensor) -> None:
        """Save all of ``memory``."""
        key = (memory.data_ptr(), int(memory.storage_offset()), memory.size(), memory.stride(), memory.dtype)
        if key not in self._whole:
            self._whole.add(key)
            saved = memory.clone()
            self._undo.append(lambda: memory.copy_(saved))

    def restore(self) -> None:
        """Put everything back, the last first."""
        with torch.no_grad():
            while self._undo:
                self._undo.pop()()
        self._whole.clear()
