# %% [markdown]
"""
Fails: 4

Pads with the last request, whose key would be written many times.
"""


# %% tags=["answer:pad_batch"]
def pad_batch(reqs, sizes, dummy):
    padded = captured_size(len(reqs), sizes) or len(reqs)
    return reqs + [reqs[-1]] * (padded - len(reqs))
