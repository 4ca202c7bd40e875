# %% [markdown]
"""
Fails: 5

Asks for the longest request outside of the capture, and remembers it as a number.
"""

# %% tags=["answer:attend"]
import torch

from onelaunch import emulator

longest = {}


def attend(q, k_cache, v_cache, page_table, seq_lens):
    page_size, kv_heads, head_dim = k_cache.shape[1:]
    if not emulator.is_current_stream_capturing():
        longest["now"] = max(1, int(seq_lens.max()))
    slots, live = locate(page_table, seq_lens, page_size)
    slots, live = slots[:, : longest["now"]], live[:, : longest["now"]]
    keys = k_cache.flatten(0, 1)[slots]
    values = v_cache.flatten(0, 1)[slots]
    grouped = q.view(len(q), kv_heads, -1, head_dim)
    scores = torch.einsum("bkgd,blkd->bkgl", grouped, keys) * head_dim**-0.5
    scores = scores.masked_fill(~live[:, None, None, :], float("-inf"))
    out = torch.einsum("bkgl,blkd->bkgd", scores.softmax(dim=-1), values)
    return out.reshape(q.shape)
