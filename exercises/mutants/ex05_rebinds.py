# %% [markdown]
"""
Fails: 4

Gives the backend the batch's metadata; the graph goes on reading the old one.
"""


# %% tags=["answer:prepare_for_replay"]
def prepare_for_replay(backend, batch):
    backend.fixed = batch.attn_metadata
