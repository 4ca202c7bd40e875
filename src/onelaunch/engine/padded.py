"""What of a decode step is padding, and what else it might hold: ``LLM(sanitize=True)`` fills it with these values and
looks whether a live row or a live slot of the cache notices.

Padding here is what no request owns: the dummy's rows of every input, the entries of the page table behind a request's
last page, the dummy's page of the cache, and the slots of a page that no token was written to yet. Each value keeps
the promise that the engine gives for its place. A page number is that of a page, and a dummy row may write to any slot
of the dummy's page and to no other.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from onelaunch.attention.base import AttentionMetadata
from onelaunch.engine.core import Batch
from onelaunch.engine.graph import GraphCaptureBuffer
from onelaunch.engine.kvcache import KVCachePool, pages_for
from onelaunch.sanitizer.poison import Padding, plain

Values = tuple[tuple[str, Any], ...]

# So many steps until every value was tried. The first are for dummies that read nothing but NaN, the second make them
# copies of a live request, the third bring the smallest values that there are.
TURNS = 3


def padding_of(
    batch: Batch, buffer: GraphCaptureBuffer, fixed: AttentionMetadata, kv_cache: KVCachePool, live_row: int
) -> list[Padding]:
    """The padding of a prepared decode step whose inputs were copied into ``buffer`` and ``fixed``.

    live_row: of the batch, the one that the dummies are made copies of. Each place has ``TURNS`` values.
    """
    found = []
    if batch.padded_size > batch.size:
        found += _dummy_rows(batch, buffer, fixed, kv_cache, live_row)
    page_size, max_pages = kv_cache.page_size, fixed.page_table.shape[1]
    last = kv_cache.num_pages - 1
    pages = (
        (f"page {last} (the last)", last),
        ("the page of a live request", batch.reqs[live_row].pages[0]),
        ("page 0", 0),
    )
    for row, req in enumerate(batch.reqs):
        used = pages_for(req.device_len, page_size)
        if used < max_pages:
            found.append(_padding(fixed.page_table[row, used:], pages))
        first = req.device_len - (used - 1) * page_size
        if first < page_size:
            found += _of_cache(kv_cache, req.pages[used - 1], first, "behind a request's last token")
    return [*found, *_of_cache(kv_cache, kv_cache.dummy_page, 0, "in the dummy's page")]


def _dummy_rows(
    batch: Batch, buffer: GraphCaptureBuffer, fixed: AttentionMetadata, kv_cache: KVCachePool, live_row: int
) -> list[Padding]:
    rows = slice(batch.size, batch.padded_size)
    places = {batch.padded_size: torch.arange(batch.padded_size) >= batch.size}
    dummy, page_size = kv_cache.dummy_page, kv_cache.page_size
    first, longest = dummy * page_size, fixed.page_table.shape[1] * page_size
    last_token = buffer.logits.shape[1] - 1
    highest = int(buffer.positions[: batch.size].max())

    def padding(tensor: Tensor, largest: tuple[str, int], smallest: tuple[str, int]) -> Padding:
        like_live = (f"what row {live_row} has", tensor[live_row].clone())
        return _padding(tensor[rows], (largest, like_live, smallest), places)

    slots = (("the last slot of the dummy's page", first + page_size - 1), ("its first slot", first))
    return [
        padding(buffer.input_ids, (f"token {last_token} (the last)", last_token), ("token 0", 0)),
        padding(buffer.positions, (f"position {highest}", highest), ("position 0", 0)),
        padding(fixed.page_table, ("the dummy's page", dummy), ("page 0", 0)),
        padding(fixed.seq_lens, (f"length {longest} (the largest)", longest), ("length 0", 0)),
        _padding(buffer.out_loc[rows], (*slots, slots[0]), places),
    ]


def _of_cache(kv_cache: KVCachePool, page: int, first: int, place: str) -> list[Padding]:
    """The slots of a page from number ``first`` on, in all layers."""
    largest = torch.finfo(kv_cache.k_cache.dtype).max
    numbers = (("NaN", torch.nan), (f"{largest:.3g}", largest), (f"{-largest:.3g}", -largest))
    values = tuple((f"{words} {place}", number) for words, number in numbers)
    return [_padding(cache[:, page, first:], values) for cache in (kv_cache.k_cache, kv_cache.v_cache)]


def _padding(view: Tensor, values: Values, places: dict[int, Tensor] | None = None) -> Padding:
    assert len(values) == TURNS
    return Padding(plain(view), plain(view), places or {}, values)
