"""The reference backend: one request after the other, in plain PyTorch, so that you can see that it is right.

It asks the device for every length (``tolist``), which on a GPU makes the host wait, and its shapes depend on the
answer. Both rule out a CUDA Graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from onelaunch.attention.base import PagedBackend

if TYPE_CHECKING:
    from onelaunch.engine.core import Batch


class TorchBackend(PagedBackend):
    capture_obstacle: ClassVar[str | None] = (
        "it reads every sequence length on the host (`seq_lens.tolist()`), and its shapes depend on them"
    )

    def forward(self, q: Tensor, k: Tensor, v: Tensor, layer_id: int, batch: Batch) -> Tensor:
        cache = self.context.kv_cache
        cache.store(k, v, batch.out_loc, layer_id)
        metadata = batch.attn_metadata
        out = torch.empty_like(q)
        start = 0
        for row, (req, length) in enumerate(zip(batch.padded_reqs, metadata.seq_lens.tolist(), strict=True)):
            pages = metadata.page_table[row, : -(-length // cache.page_size)]
            keys = cache.k_cache[layer_id].index_select(0, pages).flatten(0, 1)[:length]  # [length, kv_heads, head_dim]
            values = cache.v_cache[layer_id].index_select(0, pages).flatten(0, 1)[:length]
            tokens = slice(start, start + req.extend_len)
            out[tokens] = _attend(q[tokens], keys, values)
            start = tokens.stop
        return out


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The last ``len(q)`` tokens of a request attend to its ``len(k)`` tokens: a prompt to itself, or one to all."""
    out = F.scaled_dot_product_attention(
        q.transpose(0, 1)[None],  # [1, heads, tokens, head_dim]
        k.transpose(0, 1)[None],  # [1, kv_heads, length, head_dim]
        v.transpose(0, 1)[None],
        is_causal=q.shape[0] > 1,
        enable_gqa=True,
    )
    return out[0].transpose(0, 1)
