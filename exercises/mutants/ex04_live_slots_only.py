# %% [markdown]
"""
Fails: 3

Copies tokens and positions of all rows, and the slots of the requests alone.
"""


# %% tags=["answer:copy_from"]
def copy_from(buffer, batch):
    rows = slice(batch.padded_size)
    buffer.input_ids[rows].copy_(batch.input_ids)
    buffer.positions[rows].copy_(batch.positions)
    for row, slot in enumerate(batch.out_loc[: batch.size].tolist()):
        buffer.out_loc[row] = slot
