# %% [markdown]
"""
Fails: 1

Asks for a graph of exactly this size; three requests run eagerly, although they could be padded.
"""


# %% tags=["answer:can_use_graph"]
def can_use_graph(runner, batch):
    return batch.is_decode and batch.size in runner.graph_bs_list
