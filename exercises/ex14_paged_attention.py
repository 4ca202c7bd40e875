# %% [markdown]
"""
# Exercise 14: Attention that can be captured

The plainest paged attention goes over the requests and cuts out each one's tokens. A capture refuses that: the host
has to read the lengths. Here you write the one that it accepts. It reads as many positions for everyone, and masks
those that are not there.

*About 45 minutes. Hard. You need chapter [4](../notebooks/04_what_a_capture_refuses.ipynb) and chapter
[7](../notebooks/07_metadata_is_data.ipynb); no GPU.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex14_paged_attention.ipynb` judges
all of it, and `--hint` helps.
"""

# %%
import torch
from torch import Tensor

from onelaunch.grading import attempt, check

# %% [markdown]
"""
## What you work with

Keys and values lie in **pages**, which requests own in any order. A token's **slot** is its place in the cache when
you count through all pages: slot `s` is row `s % page_size` of page `s // page_size`.

- `page_table`: `[batch, max_pages]` int32. Entry `[r, i]` is the page with the positions `i * page_size` to
  `(i + 1) * page_size - 1` of request `r`. The first entry of a row is always a page. Entries behind a request's last
  page may be **anything**: old pages, pages of others, -1.
- `seq_lens`: `[batch]` int32, how many tokens each request has in the cache, at most `max_pages * page_size`. A dummy
  may have 0: **0 counts as 1**, so a dummy attends to its first slot.

`max_len` is `max_pages * page_size`: every request gets that many positions.

## Where is everything?

`locate(page_table, seq_lens, page_size)` returns two tensors, as a tuple:

- `slots`: `[batch, max_len]` int64. The slot of each position. Positions where there is no token get the slot of the
  **request's own first token**: they are read too, and what others left must not be.
- `live`: `[batch, max_len]` bool. `True` where there is a token.
"""


# %% tags=["answer:locate"]
def locate(
    page_table: Tensor, seq_lens: Tensor, page_size: int
) -> tuple[Tensor, Tensor]:
    """The slot that each position reads, and which positions there are."""
    # ANSWER
    offset = torch.arange(page_size, device=page_table.device)
    slots = page_table.long()[:, :, None] * page_size + offset
    slots = slots.flatten(1)
    position = torch.arange(slots.shape[1], device=page_table.device)
    live = position < seq_lens.clamp(min=1)[:, None]
    return torch.where(live, slots, slots[:, :1]), live


# %% [markdown]
"""
Two requests with pages of 2: one has 3 tokens in the pages 4 and 1, the other 1 token in page 2. A dot is a position
without a token:
"""

# %% tags=["try"]
with attempt():
    table = torch.tensor([[4, 1, -1], [2, 5, 0]], dtype=torch.int32)
    slots, live = locate(table, torch.tensor([3, 1], dtype=torch.int32), 2)
    right = [[8, 9, 2, 8, 8, 8], [4, 4, 4, 4, 4, 4]]
    for row in range(2):
        there = "".join("x" if one else "." for one in live[row].tolist())
        print(f"yours  {there}  {slots[row].tolist()}")
        print(f"right  {('xxx...', 'x.....')[row]}  {right[row]}")

# %% tags=["check:1"]
check("ex14", 1)

# %% [markdown]
"""
## Attention over it

`attend(q, k_cache, v_cache, page_table, seq_lens)` is one decode step: one new token a request, whose key is in the
cache already.

- `q`: `[batch, heads, head_dim]` float32.
- `k_cache`, `v_cache`: `[num_pages, page_size, kv_heads, head_dim]` float32. `heads` is a multiple of `kv_heads`: the
  first `heads // kv_heads` query heads share key head 0, the next ones key head 1, and so on.
- Returns `[batch, heads, head_dim]` float32. For each request and query head: the dot products with the keys of the
  request's tokens, times `head_dim ** -0.5`, a softmax over those tokens, and the values' sum with these weights.
- Changes none of its arguments.

Then what makes it fit for an engine:

- The cache is used memory. Slots that are no token of a request may hold **anything, NaN and infinity too**, and must
  not reach its result. A request's own tokens are finite, and so is a dummy's first slot.
- It can be captured, and a replay reads what `q`, the cache, `page_table` and `seq_lens` hold **then**. The shapes stay.
- It may use `locate`. It need not.
"""


# %% tags=["answer:attend"]
def attend(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    page_table: Tensor,
    seq_lens: Tensor,
) -> Tensor:
    """Each request's new token attends to the request's tokens."""
    # ANSWER
    page_size, kv_heads, head_dim = k_cache.shape[1:]
    batch = q.shape[0]
    slots, live = locate(page_table, seq_lens, page_size)
    keys = k_cache.flatten(0, 1)[slots]  # [batch, max_len, kv_heads, head_dim]
    values = v_cache.flatten(0, 1)[slots]
    grouped = q.view(batch, kv_heads, -1, head_dim)
    scores = torch.einsum("bkgd,blkd->bkgl", grouped, keys) * head_dim**-0.5
    scores = scores.masked_fill(~live[:, None, None, :], float("-inf"))
    out = torch.einsum("bkgl,blkd->bkgd", scores.softmax(dim=-1), values)
    return out.reshape(q.shape)


# %% [markdown]
"""
One head, pages of 2, and all keys alike: a request's result is the average of its values. Slot `s` holds the value
`s`, so the first request should get the average of 8, 9 and 2, and the second has a single token, in slot 4:
"""

# %% tags=["try"]
with attempt():
    cache = torch.arange(12.0).view(6, 2, 1, 1)
    lens = torch.tensor([3, 1], dtype=torch.int32)
    table = torch.tensor([[4, 1, 0], [2, 5, 0]], dtype=torch.int32)
    out = attend(
        torch.ones(2, 1, 1), torch.zeros(6, 2, 1, 1), cache, table, lens
    )
    print("yours", [round(number, 3) for number in out.flatten().tolist()])
    print("right", [round((8 + 9 + 2) / 3, 3), 4.0])

# %% tags=["check:2"]
check("ex14", 2)

# %% tags=["check:3"]
check("ex14", 3)

# %% [markdown]
"""
## In a graph

The emulator records your `attend` and says what it refuses, and why. Then other requests come: the check writes their
pages and lengths into the tensors that were recorded, and replays.
"""

# %% tags=["check:4"]
check("ex14", 4)

# %% tags=["check:5"]
check("ex14", 5)

# %% [markdown]
"""
This is the backend `gather` in `src/onelaunch/attention/gather.py`. It costs what the longest possible request costs,
for everyone. A kernel that reads the lengths on the device and stops there does not: FlashInfer's and FlashAttention's
are such kernels.
"""
