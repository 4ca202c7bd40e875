# %% [markdown]
"""
Fails: 2

Leaves the positions out: wrong from the second token on, and no error.
"""


# %% tags=["answer:copy_from"]
def copy_from(buffer, batch):
    rows = slice(batch.padded_size)
    buffer.input_ids[rows].copy_(batch.input_ids)
    buffer.out_loc[rows].copy_(batch.out_loc)
