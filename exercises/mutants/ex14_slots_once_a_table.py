# %% [markdown]
"""
Fails: 5

Works the slots out once for each page table, as a layer may for the layers after it.
"""

# %% tags=["answer:attend"]
import torch

found = {}


def attend(q, k_cache, v_cache, page_table, seq_lens):
    page_size, kv_heads, head_dim = k_cache.shape[1:]
    if found.get("table") is not page_table:
        found["table"] = page_table
        found["slots"] = locate(page_table, seq_lens, page_size)
    slots, live = found["slots"]
    keys = k_cache.flatten(0, 1)[slots]
    values = v_cache.flatten(0, 1)[slots]
    grouped = q.view(len(q), kv_heads, -1, head_dim)
    scores = torch.einsum("bkgd,blkd->bkgl", grouped, keys) * head_dim**-0.5
    scores = scores.masked_fill(~live[:, None, None, :], float("-inf"))
    out = torch.einsum("bkgl,blkd->bkgd", scores.softmax(dim=-1), values)
    return out.reshape(q.shape)
