# %% [markdown]
"""
Fails: 1

Leaves the largest size out.
"""


# %% tags=["answer:can_use_graph"]
def can_use_graph(runner, batch):
    return batch.is_decode and batch.size < runner.max_graph_bs
