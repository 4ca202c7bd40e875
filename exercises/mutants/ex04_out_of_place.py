# %% [markdown]
"""
Fails: 2

Takes an operation for one that writes: clone and to return new tensors.
"""


# %% tags=["answer:copy_from"]
def copy_from(buffer, batch):
    rows = slice(batch.padded_size)
    for name in ("input_ids", "positions", "out_loc"):
        target = getattr(buffer, name)[rows]
        target = getattr(batch, name).to(target.device, copy=True)
