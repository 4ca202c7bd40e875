"""A backend that can be captured, in plain PyTorch: gather as many tokens as a sequence may have, and mask the rest.

Nothing here asks the device for a value, and every shape follows from the batch size alone, so one recorded step serves
batches of any lengths. The price: each request costs what the longest possible one costs. ``max_seq_len_override``
lowers it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from onelaunch.attention.base import AttentionMetadata
from onelaunch.attention.torch_backend import TorchBackend

if TYPE_CHECKING:
    from onelaunch.engine.core import Batch, Context


@dataclass(eq=False)
class GatherMetadata(AttentionMetadata):
    """The first layer of a step fills in the rest, on the device, so that a graph records how it is made."""

    slots: Tensor = field(init=False)  # [padded_size * max_len] int64: slot of the cache that each position reads
    mask: Tensor = field(init=False)  # [padded_size, 1, 1, max_len] bool: True where there is a token


class GatherBackend(TorchBackend):
    """Decode steps by gathering; a prefill, which is never captured, as the reference does it."""

    capture_obstacle: ClassVar[str | None] = None
    metadata = GatherMetadata

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        table, self._page_size = context.page_table.table, context.kv_cache.page_size
        self._max_len = table.shape[1] * self._page_size
        self._position = torch.arange(self._max_len, device=table.device)
        self._offset = torch.arange(self._page_size, device=table.device)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, layer_id: int, batch: Batch) -> Tensor:
        if batch.is_prefill:
            return super().forward(q, k, v, layer_id, batch)
        cache, metadata = self.context.kv_cache, batch.attn_metadata
        assert isinstance(metadata, GatherMetadata), "prepare_metadata of another backend was used"
        if layer_id == 0:
            self._locate(metadata)
        cache.store(k, v, batch.out_loc, layer_id)
        size, _, head_dim = q.shape
        kv_heads = k.shape[1]
        keys, values = (  # [size, kv_heads, max_len, head_dim]
            memory[layer_id].flatten(0, 1).index_select(0, metadata.slots).view(size, -1, kv_heads, head_dim)
            for memory in (cache.k_cache, cache.v_cache)
        )
        # The query heads that share a key head stand where SDPA expects the tokens of one head: no key is repeated.
        grouped = q.view(size, kv_heads, -1, head_dim)
        out = F.scaled_dot_product_attention(
            grouped, keys.transpose(1, 2), values.transpose(1, 2), attn_mask=metadata.mask
        )
        return out.flatten(1, 2)

    def _locate(self, metadata: GatherMetadata) -> None:
        """Which slot each position of each request lies in, and which positions there are."""
        # A row without a token would be masked everywhere, and a softmax over nothing is NaN: it counts as length 1.
        live = self._position < metadata.seq_lens.clamp(min=1)[:, None]  # [size, max_len]
        slots = metadata.page_table.long()[:, :, None] * self._page_size + self._offset  # [size, max_pages, page_size]
        slots = slots.flatten(1)
        # Masked positions are read too, and zero times NaN is NaN. So they read the request's own first token, and
        # nothing that others left in the cache can reach it.
        metadata.slots = torch.where(live, slots, slots[:, :1]).flatten()
        metadata.mask = live[:, None, None, :]
