# %% [markdown]
"""
Fails: 2

Gives a name to the rows, and then assigns to the name.
"""


# %% tags=["answer:copy_from"]
def copy_from(buffer, batch):
    ids = buffer.input_ids[: batch.padded_size]
    positions = buffer.positions[: batch.padded_size]
    slots = buffer.out_loc[: batch.padded_size]
    ids = batch.input_ids
    positions = batch.positions
    slots = batch.out_loc
