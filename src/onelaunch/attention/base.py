"""What an attention backend promises. It is told of a batch once per step, then called once per layer.

A backend that can be captured owns fixed buffers for what it reads of a batch. A graph holds their addresses, so each
replay has to find the new batch's values in them: that is what the three capture hooks are for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
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
    """Attention of a flat batch of tokens over the paged cache.

    capture_obstacle: why a decode step with this backend cannot be captured, None where it can.
    """

    capture_obstacle: ClassVar[str | None] = None

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

    @abstractmethod
    def init_capture_graph(self, bs_list: Sequence[int]) -> None:
        """Make the fixed buffers, once, for the largest of ``bs_list``. They start as dummy requests."""

    @abstractmethod
    def prepare_for_capture(self, batch: Batch) -> None:
        """Set ``batch.attn_metadata`` to the fixed buffers' first ``batch.padded_size`` rows, to be recorded."""

    @abstractmethod
    def prepare_for_replay(self, batch: Batch) -> None:
        """Copy what ``prepare_metadata`` set into the fixed buffers, padded rows included."""


class PagedBackend(AttentionBackend):
    """A backend that reads page-table rows and lengths, as most do; subclasses add ``forward``."""

    metadata: ClassVar[type[AttentionMetadata]] = AttentionMetadata
    fixed: AttentionMetadata  # what a graph reads; there once init_capture_graph was called

    def prepare_metadata(self, batch: Batch) -> None:
        table = self.context.page_table.table
        rows = torch.tensor([req.table_idx for req in batch.padded_reqs], device=table.device)
        seq_lens = torch.tensor([req.device_len for req in batch.padded_reqs], dtype=torch.int32, device=table.device)
        last = None
        if batch.is_prefill:
            lengths = torch.tensor([req.extend_len for req in batch.reqs], device=table.device)
            last = lengths.cumsum(0) - 1
        batch.attn_metadata = self.metadata(table.index_select(0, rows), seq_lens, last)

    def init_capture_graph(self, bs_list: Sequence[int]) -> None:
        table, largest = self.context.page_table, max(bs_list)
        shape = (largest, table.table.shape[1])
        self.fixed = self.metadata(
            page_table=torch.full(shape, table.dummy_page, dtype=torch.int32, device=table.table.device),
            seq_lens=torch.ones(largest, dtype=torch.int32, device=table.table.device),
            last_indices=None,
        )

    def prepare_for_capture(self, batch: Batch) -> None:
        rows = slice(batch.padded_size)
        batch.attn_metadata = self.metadata(self.fixed.page_table[rows], self.fixed.seq_lens[rows], None)

    def prepare_for_replay(self, batch: Batch) -> None:
        rows = slice(batch.padded_size)
        self.fixed.page_table[rows].copy_(batch.attn_metadata.page_table)
        self.fixed.seq_lens[rows].copy_(batch.attn_metadata.seq_lens)
