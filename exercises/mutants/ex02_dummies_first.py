# %% [markdown]
"""
Fails: 4

Puts the dummies in front, so that every request's row moves.
"""


# %% tags=["answer:pad_batch"]
def pad_batch(reqs, sizes, dummy):
    padded = captured_size(len(reqs), sizes) or len(reqs)
    return [dummy] * (padded - len(reqs)) + reqs
