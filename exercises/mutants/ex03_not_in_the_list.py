# %% [markdown]
"""
Fails: 3

Calls every batch eager that is not itself a recorded size.
"""


# %% tags=["answer:eager_share"]
def eager_share(counts, sizes):
    eager = sum(steps for batch, steps in counts.items() if batch not in sizes)
    return eager / sum(counts.values()) if counts else 0.0
