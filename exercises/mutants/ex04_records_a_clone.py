# %% [markdown]
"""
Fails: 1

Gives the batch a copy of the buffer, so that the graph reads memory that nobody writes to.
"""


# %% tags=["answer:set_batch"]
def set_batch(buffer, batch):
    rows = slice(batch.padded_size)
    batch.input_ids = buffer.input_ids[rows].clone()
    batch.positions = buffer.positions[rows].clone()
    batch.out_loc = buffer.out_loc[rows].clone()
