# %% [markdown]
"""
Fails: 6

Believes that any order costs what the largest graph needs.
"""


# %% tags=["answer:reserved"]
def reserved(graphs):
    return max((sum(blocks) for blocks in graphs), default=0)
