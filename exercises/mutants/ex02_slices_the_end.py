# %% [markdown]
"""
Fails: 6

Keeps the last results and not the first.
"""


# %% tags=["answer:run_padded"]
def run_padded(step, reqs, sizes, dummy):
    return step(pad_batch(reqs, sizes, dummy))[-len(reqs) :]
