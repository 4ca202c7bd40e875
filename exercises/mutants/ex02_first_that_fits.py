# %% [markdown]
"""
Fails: 3

Takes the list to be in ascending order.
"""


# %% tags=["answer:captured_size"]
def captured_size(size, sizes):
    return next((one for one in sizes if one >= size), None)
