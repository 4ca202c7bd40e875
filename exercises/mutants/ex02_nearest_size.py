# %% [markdown]
"""
Fails: 1

Takes the size that is nearest, which may be too small for the batch.
"""


# %% tags=["answer:captured_size"]
def captured_size(size, sizes):
    if not sizes or size > max(sizes):
        return None
    return min(sizes, key=lambda one: abs(one - size))
