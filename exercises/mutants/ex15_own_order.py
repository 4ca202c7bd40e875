# %% [markdown]
"""
Fails: 1

Records its own sizes, in its own order.
"""


# %% tags=["answer:record_all"]
def record_all(rank):
    return {size: rank.record(size) for size in rank.sizes}
