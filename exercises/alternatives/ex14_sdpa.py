# %% [markdown]
"""
PyTorch's own attention, with the key heads repeated; the slots by division and remainder.
"""

# %% tags=["answer:locate"]
import torch


def locate(page_table, seq_lens, page_size):
    at = torch.arange(page_table.shape[1] * page_size)
    there = at[None, :] < seq_lens[:, None]
    there[:, 0] = True
    at = at.expand(len(page_table), -1).masked_fill(~there, 0)
    pages = torch.gather(page_table.to(torch.int64), 1, at // page_size)
    return pages * page_size + at % page_size, there


# %% tags=["answer:attend"]
import torch.nn.functional as F


def attend(q, k_cache, v_cache, page_table, seq_lens):
    slots, live = locate(page_table, seq_lens, k_cache.shape[1])
    share = q.shape[1] // k_cache.shape[2]
    keys, values = (
        cache[slots // cache.shape[1], slots % cache.shape[1]]
        .repeat_interleave(share, dim=2)
        .transpose(1, 2)
        for cache in (k_cache, v_cache)
    )
    mask = live[:, None, None, :]
    out = F.scaled_dot_product_attention(
        q[:, :, None], keys, values, attn_mask=mask
    )
    return out[:, :, 0]
