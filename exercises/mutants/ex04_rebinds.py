# %% [markdown]
"""
Fails: 4

Assigns the batch's tensors to the buffer's names, as set_batch does the other way round.
"""


# %% tags=["answer:copy_from"]
def copy_from(buffer, batch):
    buffer.input_ids = batch.input_ids
    buffer.positions = batch.positions
    buffer.out_loc = batch.out_loc
