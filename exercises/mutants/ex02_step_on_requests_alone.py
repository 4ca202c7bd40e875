# %% [markdown]
"""
Fails: 6

Pads, and then runs the step on the batch without its padding.
"""


# %% tags=["answer:run_padded"]
def run_padded(step, reqs, sizes, dummy):
    rows = pad_batch(reqs, sizes, dummy)
    return step(reqs)[: len(rows)]
