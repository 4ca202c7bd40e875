"""Small batches and buffers for exercises about the engine: what it has in a decode step, with numbers one can read."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

import torch
from torch import Tensor

from onelaunch.attention.base import AttentionMetadata
from onelaunch.attention.gather import GatherBackend
from onelaunch.engine.core import Batch, Context, Req, SamplingParams
from onelaunch.engine.graph import GraphCaptureBuffer
from onelaunch.engine.kvcache import KVCachePool, PageTable

INPUTS = ("input_ids", "positions", "out_loc")
PAGES, MAX_PAGES, PAGE_SIZE, ROWS = 6, 3, 16, 4
DUMMY_SLOT = PAGES * PAGE_SIZE  # the dummy's page comes behind the others
_uids = count(1)


def request(tokens: int = 5) -> Req:
    """A request that holds so many tokens, all but the last of them in the cache."""
    req = Req(next(_uids), list(range(1, tokens + 1)), tokens + 8, SamplingParams(max_tokens=8), table_idx=0, pages=[0])
    req.cached_len = tokens - 1
    return req


def dummy_request() -> Req:
    """A dummy, as the engine has one: a single token, at position 0."""
    return Req(-1, [0], 2, SamplingParams(max_tokens=1), table_idx=ROWS, pages=[PAGES])


def decode_batch(rng: random.Random, size: int, padded_size: int) -> Batch:
    """A prepared decode step of ``size`` requests that nobody has seen before, padded with dummies.

    Its inputs are ``[padded_size]`` int64; the attention's are a page table ``[padded_size, MAX_PAGES]`` int32 and
    lengths ``[padded_size]`` int32. The dummies have token 0, position 0, the slot ``DUMMY_SLOT`` and length 1.
    """
    lengths = [rng.randint(2, 40) for _ in range(size)]
    batch = Batch([request(length) for length in lengths], "decode")
    dummies = padded_size - size
    batch.padded_reqs = batch.reqs + [dummy_request()] * dummies
    batch.input_ids = torch.tensor([*(rng.randint(100, 999) for _ in lengths), *[0] * dummies])
    batch.positions = torch.tensor([*(length - 1 for length in lengths), *[0] * dummies])
    batch.out_loc = torch.tensor([*rng.sample(range(DUMMY_SLOT), size), *[DUMMY_SLOT] * dummies])
    pages = [rng.sample(range(PAGES), MAX_PAGES) for _ in lengths] + [[PAGES] * MAX_PAGES] * dummies
    seq_lens = (batch.positions + 1).to(torch.int32)
    batch.attn_metadata = AttentionMetadata(torch.tensor(pages, dtype=torch.int32), seq_lens, None)
    return batch


def context() -> Context:
    """A cache of ``PAGES`` pages and the dummy's, a page table of ``ROWS`` rows and the dummy's, a gather backend."""
    cpu = torch.device("cpu")
    cache = KVCachePool(
        num_layers=1, num_pages=PAGES, page_size=PAGE_SIZE, num_kv_heads=1, head_dim=2, dtype=torch.float32, device=cpu
    )
    made = Context(cache, PageTable(ROWS, MAX_PAGES, cache.dummy_page, cpu))
    made.attn_backend = GatherBackend(made)
    return made


class Runner:
    """A ``GraphRunner`` with graphs that are easy to follow: row r of the logits is ``input_ids[r]`` plus 1000 times
    ``seq_lens[r]``, plus the column, as the fixed buffers have them. An earlier batch has left its values in all rows.

    log: what was done to it, in order: ``"copy_from"``, ``"prepare_for_replay"``, ``"replay 4"``, ``"note_eager"``.
    """

    vocab_size = 5

    def __init__(self, rng: random.Random, sizes: list[int]) -> None:
        self.graph_bs_list, self.max_graph_bs = sorted(sizes), max(sizes, default=0)
        self.log: list[str] = []
        self.context = context()
        self.buffer = used_buffer(rng, max(1, self.max_graph_bs), self.vocab_size)
        backend: Any = self.context.attn_backend
        backend.init_capture_graph([max(1, self.max_graph_bs)])
        self.fixed = backend.fixed
        self.fixed.seq_lens.copy_(torch.tensor([rng.randint(50, 99) for _ in self.fixed.seq_lens]))
        self._listen(self.buffer, "copy_from")
        self._listen(backend, "prepare_for_replay")
        self.graph_map = {size: Graph(self, size) for size in self.graph_bs_list}

    def note_eager(self, batch: Batch) -> None:
        """Take note of a step that runs without a graph."""
        self.log.append("note_eager")

    def logits(self, batch: Batch) -> Tensor:
        """What is right for the requests of ``batch``: ``[size, vocab_size]`` float32."""
        return self._logits(batch.input_ids, batch.attn_metadata.seq_lens)[: batch.size]

    def _logits(self, input_ids: Tensor, seq_lens: Tensor) -> Tensor:
        return (input_ids + 1000 * seq_lens)[:, None].float() + torch.arange(self.vocab_size)

    def _listen(self, owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def logged(batch: Batch) -> None:
            self.log.append(name)
            function(batch)

        setattr(owner, name, logged)


class Graph:
    """One of a ``Runner``'s graphs: its replay reads the fixed buffers and writes the logits."""

    def __init__(self, runner: Runner, size: int) -> None:
        self._runner, self._size = runner, size

    def replay(self) -> None:
        """Run the step of ``size`` rows."""
        made, rows = self._runner, slice(self._size)
        made.log.append(f"replay {self._size}")
        made.buffer.logits[rows] = made._logits(made.buffer.input_ids[rows], made.fixed.seq_lens[rows])


def used_buffer(rng: random.Random, rows: int = 4, vocab_size: int = 5) -> GraphCaptureBuffer:
    """Fixed buffers for ``rows`` requests, in which an earlier batch has left its values in every row."""
    buffer = GraphCaptureBuffer.init(rows, vocab_size, torch.device("cpu"), DUMMY_SLOT)
    for name in INPUTS:
        getattr(buffer, name).copy_(torch.tensor([rng.randint(1000, 1999) for _ in range(rows)]))
    return buffer


def is_view(got: object, whole: Tensor) -> bool:
    """Whether ``got`` is the first rows of ``whole``: the same memory, and no copy of it."""
    return (
        isinstance(got, Tensor)
        and got.dtype == whole.dtype
        and got.data_ptr() == whole.data_ptr()
        and (len(got) < 2 or got.stride() == whole.stride())
    )
