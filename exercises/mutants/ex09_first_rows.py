# %% [markdown]
"""
Fails: 1

Takes the positions for 0, 1, 2, ...: right for one prompt from its start.
"""


# %% tags=["answer:add_positions"]
def add_positions(x, table, positions):
    return x + table[: len(positions)]
