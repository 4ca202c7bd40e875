# %% [markdown]
"""
# Exercise 5: The metadata hooks

Attention reads two things of a batch beside its tokens: which pages each request has, and how many tokens. A backend
that can be recorded keeps them in fixed buffers, and has three hooks for them. Here you write the hooks, and the real
engine runs on them.

*About 30 minutes. Medium. You need [chapter 7](../notebooks/07_metadata_is_data.ipynb); no GPU.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex05_metadata_hooks.ipynb` judges all
of it, and `--hint` helps.
"""

# %%
import random
from collections.abc import Sequence

import torch
from IPython.display import display

from onelaunch import viz
from onelaunch.attention.base import PagedBackend
from onelaunch.engine.core import Batch
from onelaunch.grading import attempt, check, small

# %% [markdown]
"""
## What you work with

`backend` is the engine's gather backend, without its hooks. You need of it

- `backend.metadata(page_table, seq_lens, last_indices)`, which makes a metadata object of the kind that this backend
  reads. It has these three as attributes. `last_indices` is for prefills; in a decode step it is `None`;
- `backend.context.page_table.table`, the engine's whole page table, `[rows, max_pages]` int32, and
  `backend.context.page_table.dummy_page`, the number of the page that belongs to the dummy request.

`batch` is a decode step with `size` requests and `padded_size` rows. In an engine, `batch.attn_metadata` has been
made for it before a replay: a new `page_table` `[padded_size, max_pages]` int32, and `seq_lens` `[padded_size]` int32.
"""

# %% tags=["try"]
batch = small.decode_batch(random.Random(5), size=3, padded_size=4)
print("page_table", batch.attn_metadata.page_table.tolist())
print("seq_lens  ", batch.attn_metadata.seq_lens.tolist())

# %% [markdown]
"""
## Once, before the first capture

`init_capture_graph(backend, bs_list)` makes the fixed buffers.

- `bs_list`: the sizes that will be recorded, at least one, in any order.
- Sets `backend.fixed` to a new metadata object with a `page_table` `[largest, max_pages]` int32, where `max_pages` is
  the width of the engine's table, and `seq_lens` `[largest]` int32. `last_indices` is `None`.
- They start as dummies: every entry of the page table names the dummy's page, every length is 1.
"""


# %% tags=["answer:init_capture_graph"]
def init_capture_graph(backend: PagedBackend, bs_list: Sequence[int]) -> None:
    """Make `backend.fixed`, for the largest of `bs_list`, as dummies."""
    # ANSWER
    table, largest = backend.context.page_table, max(bs_list)
    shape = (largest, table.table.shape[1])
    backend.fixed = backend.metadata(
        page_table=torch.full(shape, table.dummy_page, dtype=torch.int32),
        seq_lens=torch.ones(largest, dtype=torch.int32),
        last_indices=None,
    )


# %% tags=["check:1"]
check("ex05", 1)

# %% tags=["check:2"]
check("ex05", 2)

# %% [markdown]
"""
## Before each capture

`prepare_for_capture(backend, batch)` is called once for each size, before its graph is recorded.

- Sets `batch.attn_metadata` to a new metadata object whose `page_table` and `seq_lens` **are** the first
  `batch.padded_size` rows of `backend.fixed`: the same memory, no copy. `last_indices` is `None`.
- `batch.attn_metadata` may not exist before. `backend.fixed` stays as it is.
"""


# %% tags=["answer:prepare_for_capture"]
def prepare_for_capture(backend: PagedBackend, batch: Batch) -> None:
    """Let `batch` read the fixed buffers, to be recorded."""
    # ANSWER
    rows, fixed = slice(batch.padded_size), backend.fixed
    batch.attn_metadata = backend.metadata(
        fixed.page_table[rows], fixed.seq_lens[rows], None
    )


# %% tags=["check:3"]
check("ex05", 3)

# %% [markdown]
"""
## Before each replay

`prepare_for_replay(backend, batch)` is called with the batch of this step. Then a graph is replayed that reads what
the memory of `backend.fixed` holds.

- Brings `page_table` and `seq_lens` of `batch.attn_metadata` into the first `batch.padded_size` rows of
  `backend.fixed`, padded rows included.
- The tensors of `backend.fixed` stay the tensors they are, where they are. What is behind those rows does not matter.
- `batch.attn_metadata` stays as it is.
"""


# %% tags=["answer:prepare_for_replay"]
def prepare_for_replay(backend: PagedBackend, batch: Batch) -> None:
    """Bring the metadata of `batch` into the fixed buffers."""
    # ANSWER
    rows, fixed = slice(batch.padded_size), backend.fixed
    fixed.page_table[rows].copy_(batch.attn_metadata.page_table)
    fixed.seq_lens[rows].copy_(batch.attn_metadata.seq_lens)


# %% [markdown]
"""
Look at it. On the left stands what the step needs, on the right what the graph will find:
"""

# %% tags=["try"]
with attempt():
    backend = small.context().attn_backend
    init_capture_graph(backend, [1, 2, 4])
    fixed = backend.fixed
    prepare_for_replay(backend, batch)

    def read(metadata, first: int) -> list[int]:
        return metadata.page_table[:, first].tolist()

    step = {"seq_lens": batch.attn_metadata.seq_lens.tolist()}
    found = {"seq_lens": fixed.seq_lens.tolist()}
    for page in range(small.MAX_PAGES):
        step[f"page {page}"] = read(batch.attn_metadata, page)
        found[f"page {page}"] = read(fixed, page)
    display(viz.fixed_buffers(step, found, live=3))

# %% tags=["check:4"]
check("ex05", 4)

# %% [markdown]
"""
## In the engine

Now your three hooks take the place of the backend's own. SmolLM2 records a graph of 4 rows on them and answers three
requests at once; one of them grows into its second page. The text must be what Hugging Face's model writes. If it is
not, the step is run again beside eager, and the hint is what the sanitizer finds. This takes a few seconds, and the
first time it fetches the model.
"""

# %% tags=["check:5"]
check("ex05", 5)

# %% [markdown]
"""
The engine's own hooks are in `PagedBackend`, in `src/onelaunch/attention/base.py`. A backend for FlashInfer or
FlashAttention has the same three, and copies what its kernels read.
"""
