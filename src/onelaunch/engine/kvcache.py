"""The paged KV cache: keys and values live in pages of a few tokens, a table says which pages are whose.

A request takes pages as it grows and gives all of them back when it ends, so the memory of a short answer is free
for the next request at once. One page more than the pool hands out belongs to the dummy request, which fills up
batches for graphs: it may write there whatever it likes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class KVCachePool:
    """Keys and values of all layers: ``[num_layers, num_pages + 1, page_size, num_kv_heads, head_dim]`` each.

    The last page is the dummy's. Memory starts as zeros, because a masked row still multiplies what it reads by zero
    and zero times NaN is NaN.
    """

    def __init__(
        self,
        *,
        num_layers: int,
        num_pages: int,
        page_size: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        shape = (num_layers, num_pages + 1, page_size, num_kv_heads, head_dim)
        self.num_pages, self.page_size = num_pages, page_size
        self.dummy_page = num_pages
        self.k_cache = torch.zeros(shape, dtype=dtype, device=device)
        self.v_cache = torch.zeros(shape, dtype=dtype, device=device)
        # The same memory, one row per token: a token's slot is page * page_size + offset.
        self._k_slots = self.k_cache.view(num_layers, -1, num_kv_heads, head_dim).unbind()
        self._v_slots = self.v_cache.view(num_layers, -1, num_kv_heads, head_dim).unbind()

    def store(self, k: Tensor, v: Tensor, out_loc: Tensor, layer_id: int) -> None:
        """Write ``k`` and ``v`` ``[tokens, num_kv_heads, head_dim]`` to the slots ``out_loc`` ``[tokens]``."""
        self._k_slots[layer_id].index_copy_(0, out_loc, k)
        self._v_slots[layer_id].index_copy_(0, out_loc, v)

    @property
    def nbytes(self) -> int:
        return self.k_cache.nbytes + self.v_cache.nbytes


def pages_for(tokens: int, page_size: int) -> int:
    """Pages that hold ``tokens`` tokens."""
    return -(-tokens // page_size)


class PageAllocator:
    """Which pages are free. The scheduler promises a request its pages before it runs (``reserve``) and hands them
    out one by one as the request grows (``allocate``); what is promised to one is never promised to another.
    """

    def __init__(self, num_pages: int) -> None:
        self.num_pages = num_pages
        self._free = list(range(num_pages - 1, -1, -1))
        self._reserved = 0  # promised and not handed out yet

    @property
    def num_free(self) -> int:
        """Pages that nobody holds, promised ones included."""
        return len(self._free)

    @property
    def num_available(self) -> int:
        """Pages that can still be promised."""
        return len(self._free) - self._reserved

    def reserve(self, count: int) -> bool:
        """Promise ``count`` pages; False, and nothing promised, where too few are left."""
        if count > self.num_available:
            return False
        self._reserved += count
        return True

    def allocate(self) -> int:
        """Hand out one promised page."""
        if self._reserved < 1:
            raise RuntimeError("a page was asked for that nobody had reserved")
        self._reserved -= 1
        return self._free.pop()

    def free(self, pages: Sequence[int], reserved: int = 0) -> None:
        """Take back ``pages``, and the promise of ``reserved`` more that were never needed."""
        if set(pages) & set(self._free):
            raise RuntimeError(f"pages {sorted(set(pages) & set(self._free))} were given back twice")
        self._free.extend(pages)
        self._reserved -= reserved


class PageTable:
    """The pages of every running request, on the device: ``table`` ``[max_running_req + 1, max_pages]`` int32.

    Row r, column c is the page that holds tokens ``c * page_size`` and on of the request in row r; entries not in use
    name the dummy page. The last row is the dummy request's.
    """

    def __init__(self, max_running_req: int, max_pages: int, dummy_page: int, device: torch.device) -> None:
        self.table = torch.full((max_running_req + 1, max_pages), dummy_page, dtype=torch.int32, device=device)
        self.dummy_page = dummy_page
        self.dummy_row = max_running_req
        self._free_rows = list(range(max_running_req - 1, -1, -1))

    @property
    def num_free_rows(self) -> int:
        return len(self._free_rows)

    def take_row(self) -> int:
        return self._free_rows.pop()

    def set_page(self, row: int, column: int, page: int) -> None:
        self.table[row, column] = page

    def release_row(self, row: int) -> None:
        self.table[row] = self.dummy_page
        self._free_rows.append(row)
