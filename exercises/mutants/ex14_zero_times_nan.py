# %% [markdown]
"""
Fails: 3

Gathers whole pages and masks the scores. The values behind a weight of 0 may still be NaN.
"""

# %% tags=["answer:attend"]
import torch


def attend(q, k_cache, v_cache, page_table, seq_lens):
    page_size, kv_heads, head_dim = k_cache.shape[1:]
    pages = page_table.clamp(min=0)
    keys = k_cache[pages].flatten(1, 2)
    values = v_cache[pages].flatten(1, 2)
    live = torch.arange(keys.shape[1]) < seq_lens.clamp(min=1)[:, None]
    grouped = q.view(len(q), kv_heads, -1, head_dim)
    scores = torch.einsum("bkgd,blkd->bkgl", grouped, keys) * head_dim**-0.5
    scores = scores.masked_fill(~live[:, None, None, :], float("-inf"))
    out = torch.einsum("bkgl,blkd->bkgd", scores.softmax(dim=-1), values)
    return out.reshape(q.shape)
