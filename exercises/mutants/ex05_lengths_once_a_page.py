# %% [markdown]
"""
Fails: 5

Copies both when the pages change; lengths change in between.
"""

# %% tags=["answer:prepare_for_replay"]
last = {}


def prepare_for_replay(backend, batch):
    rows, fixed = slice(batch.padded_size), backend.fixed
    pages = batch.attn_metadata.page_table.tolist()
    if last.get("pages") != pages:
        last["pages"] = pages
        fixed.page_table[rows].copy_(batch.attn_metadata.page_table)
        fixed.seq_lens[rows].copy_(batch.attn_metadata.seq_lens)
