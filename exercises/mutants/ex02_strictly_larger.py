# %% [markdown]
"""
Fails: 2

Takes "holds" for "is larger than": a batch of 4 runs as 8.
"""


# %% tags=["answer:captured_size"]
def captured_size(size, sizes):
    return min((one for one in sizes if one > size), default=None)
