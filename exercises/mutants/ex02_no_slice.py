# %% [markdown]
"""
Fails: 6

Returns the dummies' results too.
"""


# %% tags=["answer:run_padded"]
def run_padded(step, reqs, sizes, dummy):
    return step(pad_batch(reqs, sizes, dummy))
