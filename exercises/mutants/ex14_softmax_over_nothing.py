# %% [markdown]
"""
Fails: 3

Masks by the length itself: a dummy of length 0 has a softmax over nothing.
"""


# %% tags=["answer:attend"]
def attend(q, k_cache, v_cache, page_table, seq_lens):
    page_size, kv_heads, head_dim = k_cache.shape[1:]
    slots, live = locate(page_table, seq_lens, page_size)
    gone = torch.arange(live.shape[1]) >= seq_lens[:, None]
    keys = k_cache.flatten(0, 1)[slots]
    values = v_cache.flatten(0, 1)[slots]
    grouped = q.view(len(q), kv_heads, -1, head_dim)
    scores = torch.einsum("bkgd,blkd->bkgl", grouped, keys) * head_dim**-0.5
    scores = scores.masked_fill(gone[:, None, None, :], float("-inf"))
    out = torch.einsum("bkgl,blkd->bkgd", scores.softmax(dim=-1), values)
    return out.reshape(q.shape)
