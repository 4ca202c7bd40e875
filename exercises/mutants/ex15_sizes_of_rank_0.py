# %% [markdown]
"""
Fails: 1

Takes what rank 0 has.
"""


# %% tags=["answer:record_all"]
def record_all(rank):
    sizes = rank.all_gather(rank.sizes)[0]
    return {s: rank.record(s) for s in sorted(sizes, reverse=True)}
