# %% [markdown]
"""
Fails: 4

Goes over the requests and cuts out the tokens of each.
"""

# %% tags=["answer:attend"]
import torch
import torch.nn.functional as F


def attend(q, k_cache, v_cache, page_table, seq_lens):
    slots, _ = locate(page_table, seq_lens, k_cache.shape[1])
    share = q.shape[1] // k_cache.shape[2]
    out = torch.empty_like(q)
    for row, length in enumerate(seq_lens.tolist()):
        own = slots[row, : max(1, length)]
        keys = k_cache.flatten(0, 1)[own].repeat_interleave(share, dim=1)
        values = v_cache.flatten(0, 1)[own].repeat_interleave(share, dim=1)
        out[row] = F.scaled_dot_product_attention(
            q[row][:, None], keys.transpose(0, 1), values.transpose(0, 1)
        )[:, 0]
    return out
