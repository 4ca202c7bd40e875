# %% [markdown]
"""
Fails: 4

Assigns to the attributes of the fixed metadata.
"""


# %% tags=["answer:prepare_for_replay"]
def prepare_for_replay(backend, batch):
    backend.fixed.page_table = batch.attn_metadata.page_table
    backend.fixed.seq_lens = batch.attn_metadata.seq_lens
