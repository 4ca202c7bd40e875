# %% [markdown]
"""
Fails: 1

Adds in place, into what the caller still needs.
"""


# %% tags=["answer:add_positions"]
def add_positions(x, table, positions):
    return x.add_(table[positions])
