# %% [markdown]
"""
Fails: 2

Forgets to scale the scores.
"""


# %% tags=["answer:attend"]
def attend(q, k_cache, v_cache, page_table, seq_lens):
    page_size, kv_heads, head_dim = k_cache.shape[1:]
    slots, live = locate(page_table, seq_lens, page_size)
    keys = k_cache.flatten(0, 1)[slots]
    values = v_cache.flatten(0, 1)[slots]
    grouped = q.view(len(q), kv_heads, -1, head_dim)
    scores = torch.einsum("bkgd,blkd->bkgl", grouped, keys)
    scores = scores.masked_fill(~live[:, None, None, :], float("-inf"))
    out = torch.einsum("bkgl,blkd->bkgd", scores.softmax(dim=-1), values)
    return out.reshape(q.shape)
