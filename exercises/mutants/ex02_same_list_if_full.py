# %% [markdown]
"""
Fails: 5

Hands the batch itself back where there is nothing to add.
"""


# %% tags=["answer:pad_batch"]
def pad_batch(reqs, sizes, dummy):
    padded = captured_size(len(reqs), sizes)
    if padded is None or padded == len(reqs):
        return reqs
    return reqs + [dummy] * (padded - len(reqs))
