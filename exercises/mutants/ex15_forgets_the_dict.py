# %% [markdown]
"""
Fails: 3

Empties the dict, and takes that for destroying.
"""


# %% tags=["answer:shut_down"]
def shut_down(rank, graphs):
    graphs.clear()
    rank.close()
