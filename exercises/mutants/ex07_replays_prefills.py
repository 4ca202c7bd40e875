# %% [markdown]
"""
Fails: 1

Looks at the size alone.
"""


# %% tags=["answer:can_use_graph"]
def can_use_graph(runner, batch):
    return batch.size <= runner.max_graph_bs
