# %% [markdown]
"""
Fails: 5

Saves the copies where the requests are those of the step before; their tokens are not.
"""

# %% tags=["answer:copy_from"]
last_reqs = []


def copy_from(buffer, batch):
    if batch.reqs == last_reqs:
        return
    last_reqs[:] = batch.reqs
    rows = slice(batch.padded_size)
    buffer.input_ids[rows].copy_(batch.input_ids)
    buffer.positions[rows].copy_(batch.positions)
    buffer.out_loc[rows].copy_(batch.out_loc)
