# %% [markdown]
"""
Fails: 1

Records every graph on the whole buffer.
"""


# %% tags=["answer:set_batch"]
def set_batch(buffer, batch):
    batch.input_ids = buffer.input_ids
    batch.positions = buffer.positions
    batch.out_loc = buffer.out_loc
