# %% [markdown]
"""
Fails: 1

Picks the rows with a tensor of numbers, which copies them.
"""

# %% tags=["answer:set_batch"]
import torch


def set_batch(buffer, batch):
    rows = torch.arange(batch.padded_size)
    batch.input_ids = buffer.input_ids[rows]
    batch.positions = buffer.positions[rows]
    batch.out_loc = buffer.out_loc[rows]
