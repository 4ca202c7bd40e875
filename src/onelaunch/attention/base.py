"""What an attention backend promises. It is told of a batch once per step, then called once per layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from onelaunch.engine.core import Batch, Context


@dataclass(eq=False)
class AttentionMetadata:
    """What a backend needs of a batch beside its tokens, the same for all layers of a step."""

    page_table: Tensor  # [padded_size, max_pages] int32: the requests' rows of the page table
    seq_lens: Tensor  # [padded_size] int32: tokens each request has in the cache after this step
    last_indices: Tensor | None  # [size] int64: last token of each prompt, None in a decode step


class AttentionBackend(ABC):
    """Attention of a flat batch of tokens over the paged cache."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @abstractmethod
    def prepare_metadata(self, batch: Batch) -> None:
        """Set ``batch.attn_metadata``. Host work, outside of any graph."""

    @abstractmethod
    def forward(self, q: Tensor, k: Tensor, v: Tensor, layer_id: int, batch: Batch) -> Tensor:
        """Store ``k`` and ``v``, then attend.

        q: ``[tokens, num_heads, head_dim]``; k, v: ``[tokens, num_kv_heads, head_dim]``. Each token sees its own
        request's tokens up to itself. Returns ``[tokens, num_heads, head_dim]``.
        """
