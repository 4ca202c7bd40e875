# %% [markdown]
"""
Fails: 2

Masks the weights after the softmax: they no longer add up to 1.
"""


# %% tags=["answer:attend"]
def attend(q, k_cache, v_cache, page_table, seq_lens):
    page_size, kv_heads, head_dim = k_cache.shape[1:]
    slots, live = locate(page_table, seq_lens, page_size)
    keys = k_cache.flatten(0, 1)[slots]
    values = v_cache.flatten(0, 1)[slots]
    grouped = q.view(len(q), kv_heads, -1, head_dim)
    scores = torch.einsum("bkgd,blkd->bkgl", grouped, keys) * head_dim**-0.5
    weights = scores.softmax(dim=-1) * live[:, None, None, :]
    out = torch.einsum("bkgl,blkd->bkgd", weights, values)
    return out.reshape(q.shape)
