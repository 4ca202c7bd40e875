# %% [markdown]
"""
Fails: 1

Uses range as if the last kernel were not part of a life.
"""


# %% tags=["answer:alive_together"]
def alive_together(a, b):
    return bool(set(range(a[1], a[2])) & set(range(b[1], b[2])))
