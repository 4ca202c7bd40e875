# %% [markdown]
"""
Fails: 1

Sends masked positions to slot 0, which may be somebody's.
"""

# %% tags=["answer:locate"]
import torch


def locate(page_table, seq_lens, page_size):
    offset = torch.arange(page_size)
    slots = page_table.long()[:, :, None] * page_size + offset
    slots = slots.flatten(1)
    live = torch.arange(slots.shape[1]) < seq_lens.clamp(min=1)[:, None]
    return torch.where(live, slots, 0), live
