# %% [markdown]
"""
Gathers whole pages without locate, puts zeros where there is no token, and writes the softmax out.
"""

# %% tags=["answer:attend"]
import torch


def attend(q, k_cache, v_cache, page_table, seq_lens):
    batch, heads, head_dim = q.shape
    kv_heads = k_cache.shape[2]
    pages = page_table.clamp(min=0).flatten()
    keys = k_cache.index_select(0, pages).view(batch, -1, kv_heads, head_dim)
    values = v_cache.index_select(0, pages).view(batch, -1, kv_heads, head_dim)
    lens = torch.clamp(seq_lens, min=1)
    gone = torch.arange(keys.shape[1])[None] >= lens[:, None]
    keys = keys.masked_fill(gone[:, :, None, None], 0.0)
    values = values.masked_fill(gone[:, :, None, None], 0.0)
    out = []
    share = heads // kv_heads
    for head in range(heads):
        key, value = keys[:, :, head // share], values[:, :, head // share]
        scores = (key * q[:, head, None]).sum(-1) / head_dim**0.5
        scores = scores.masked_fill(gone, -1e30)
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        weights = weights / weights.sum(-1, keepdim=True)
        out.append((weights[:, :, None] * value).sum(1))
    return torch.stack(out, dim=1)
