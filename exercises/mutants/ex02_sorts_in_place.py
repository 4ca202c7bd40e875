# %% [markdown]
"""
Fails: 3

Sorts the engine's own list.
"""


# %% tags=["answer:captured_size"]
def captured_size(size, sizes):
    sizes.sort()
    return next((one for one in sizes if one >= size), None)
