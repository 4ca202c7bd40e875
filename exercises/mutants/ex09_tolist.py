# %% [markdown]
"""
Fails: 1

Reads all positions at once instead of one by one.
"""


# %% tags=["answer:add_positions"]
def add_positions(x, table, positions):
    return x + torch.stack([table[at] for at in positions.tolist()])
