# %% [markdown]
"""
Fails: 4

Builds new tensors of full length out of the batch and what is behind it.
"""

# %% tags=["answer:copy_from"]
import torch


def copy_from(buffer, batch):
    for name in ("input_ids", "positions", "out_loc"):
        rest = getattr(buffer, name)[batch.padded_size :]
        setattr(buffer, name, torch.cat([getattr(batch, name), rest]))
