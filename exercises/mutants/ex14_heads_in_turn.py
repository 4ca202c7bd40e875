# %% [markdown]
"""
Fails: 2

Lets the query heads take the key heads in turn: repeats them as a whole.
"""

# %% tags=["answer:attend"]
import torch.nn.functional as F


def attend(q, k_cache, v_cache, page_table, seq_lens):
    slots, live = locate(page_table, seq_lens, k_cache.shape[1])
    share = q.shape[1] // k_cache.shape[2]
    keys = k_cache.flatten(0, 1)[slots].repeat(1, 1, share, 1).transpose(1, 2)
    values = v_cache.flatten(0, 1)[slots].repeat(1, 1, share, 1).transpose(1, 2)
    out = F.scaled_dot_product_attention(
        q[:, :, None], keys, values, attn_mask=live[:, None, None, :]
    )
    return out[:, :, 0]
