# %% [markdown]
"""
Fails: 2

Forgets that there may be no size that is large enough.
"""


# %% tags=["answer:captured_size"]
def captured_size(size, sizes):
    return min(one for one in sizes if one >= size)
