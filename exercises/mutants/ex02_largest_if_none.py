# %% [markdown]
"""
Fails: 2

Gives the largest size to a batch that is larger than all of them.
"""


# %% tags=["answer:captured_size"]
def captured_size(size, sizes):
    for one in sorted(sizes):
        if one >= size:
            return one
    return max(sizes) if sizes else None
