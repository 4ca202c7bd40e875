# %% [markdown]
"""
Fails: 5

Takes the slot for something that a request keeps, like its page: copies it when the requests change.
"""

# %% tags=["answer:copy_from"]
known_reqs = []


def copy_from(buffer, batch):
    rows = slice(batch.padded_size)
    buffer.input_ids[rows].copy_(batch.input_ids)
    buffer.positions[rows].copy_(batch.positions)
    if batch.reqs != known_reqs:
        known_reqs[:] = batch.reqs
        buffer.out_loc[rows].copy_(batch.out_loc)
