# %% [markdown]
"""
Fails: 5

Appends the dummies to the batch itself.
"""


# %% tags=["answer:pad_batch"]
def pad_batch(reqs, sizes, dummy):
    padded = captured_size(len(reqs), sizes) or len(reqs)
    for _ in range(padded - len(reqs)):
        reqs.append(dummy)
    return reqs
