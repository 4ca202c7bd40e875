# %% [markdown]
"""
Fails: 1

Asks only whether the one is born within the other's life, and misses the other way around.
"""


# %% tags=["answer:alive_together"]
def alive_together(a, b):
    return a[1] <= b[1] <= a[2]
