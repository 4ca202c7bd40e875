# %% [markdown]
"""
Goes over the names of the inputs, with setattr and an assignment to a slice.
"""


# %% tags=["answer:set_batch"]
def set_batch(buffer, batch):
    for name in ("input_ids", "positions", "out_loc"):
        setattr(batch, name, getattr(buffer, name)[: batch.padded_size])


# %% tags=["answer:copy_from"]
def copy_from(buffer, batch):
    for name in ("input_ids", "positions", "out_loc"):
        getattr(buffer, name)[: batch.padded_size] = getattr(batch, name)
