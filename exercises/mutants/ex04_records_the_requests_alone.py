# %% [markdown]
"""
Fails: 1

Takes as many rows as there are requests.
"""


# %% tags=["answer:set_batch"]
def set_batch(buffer, batch):
    batch.input_ids = buffer.input_ids[: batch.size]
    batch.positions = buffer.positions[: batch.size]
    batch.out_loc = buffer.out_loc[: batch.size]
