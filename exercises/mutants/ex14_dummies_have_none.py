# %% [markdown]
"""
Fails: 1

A dummy of length 0 has no position at all.
"""

# %% tags=["answer:locate"]
import torch


def locate(page_table, seq_lens, page_size):
    offset = torch.arange(page_size)
    slots = page_table.long()[:, :, None] * page_size + offset
    slots = slots.flatten(1)
    live = torch.arange(slots.shape[1]) < seq_lens[:, None]
    return torch.where(live, slots, slots[:, :1]), live
