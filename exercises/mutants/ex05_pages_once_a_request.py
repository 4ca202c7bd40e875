# %% [markdown]
"""
Fails: 5

Copies the page table when the requests change, and forgets that a request may get a page.
"""

# %% tags=["answer:prepare_for_replay"]
pages_of = []


def prepare_for_replay(backend, batch):
    rows, fixed = slice(batch.padded_size), backend.fixed
    fixed.seq_lens[rows].copy_(batch.attn_metadata.seq_lens)
    if batch.reqs != pages_of:
        pages_of[:] = batch.reqs
        fixed.page_table[rows].copy_(batch.attn_metadata.page_table)
