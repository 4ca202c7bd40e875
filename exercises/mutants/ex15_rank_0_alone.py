# %% [markdown]
"""
Fails: 1

Lets rank 0 record for all.
"""


# %% tags=["answer:record_all"]
def record_all(rank):
    if rank.number:
        return {}
    return {s: rank.record(s) for s in sorted(rank.sizes, reverse=True)}
