# %% [markdown]
"""
Fails: 1

Lines up all first rows of the pages, then all second ones.
"""

# %% tags=["answer:locate"]
import torch


def locate(page_table, seq_lens, page_size):
    offset = torch.arange(page_size)
    slots = page_table.long()[:, :, None] * page_size + offset
    slots = slots.transpose(1, 2).flatten(1)
    live = torch.arange(slots.shape[1]) < seq_lens.clamp(min=1)[:, None]
    return torch.where(live, slots, slots[:, :1]), live
