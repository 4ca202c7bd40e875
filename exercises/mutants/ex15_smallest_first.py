# %% [markdown]
"""
Fails: 1

Starts with the smallest.
"""


# %% tags=["answer:record_all"]
def record_all(rank):
    common = set.intersection(*map(set, rank.all_gather(rank.sizes)))
    return {s: rank.record(s) for s in sorted(common)}
