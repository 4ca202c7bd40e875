# %% [markdown]
"""
Fails: 1

Sorts, and asks nobody.
"""


# %% tags=["answer:record_all"]
def record_all(rank):
    return {s: rank.record(s) for s in sorted(rank.sizes, reverse=True)}
