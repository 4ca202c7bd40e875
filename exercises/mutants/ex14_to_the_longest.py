# %% [markdown]
"""
Fails: 4

Cuts off at the longest request of the batch, which the host has to ask for.
"""


# %% tags=["answer:attend"]
def attend(q, k_cache, v_cache, page_table, seq_lens):
    page_size, kv_heads, head_dim = k_cache.shape[1:]
    slots, live = locate(page_table, seq_lens, page_size)
    longest = int(seq_lens.max().clamp(min=1))
    slots, live = slots[:, :longest], live[:, :longest]
    keys = k_cache.flatten(0, 1)[slots]
    values = v_cache.flatten(0, 1)[slots]
    grouped = q.view(len(q), kv_heads, -1, head_dim)
    scores = torch.einsum("bkgd,blkd->bkgl", grouped, keys) * head_dim**-0.5
    scores = scores.masked_fill(~live[:, None, None, :], float("-inf"))
    out = torch.einsum("bkgl,blkd->bkgd", scores.softmax(dim=-1), values)
    return out.reshape(q.shape)
