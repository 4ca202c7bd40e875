# %% [markdown]
"""
Makes every row a dummy again before it copies, in reverse order of the fields.
"""

# %% tags=["answer:init_capture_graph"]
import torch


def init_capture_graph(backend, bs_list):
    _, max_pages = backend.context.page_table.table.shape
    largest = max(bs_list)
    page_table = torch.empty(largest, max_pages, dtype=torch.int32)
    seq_lens = torch.zeros(largest, dtype=torch.int32)
    page_table.fill_(backend.context.page_table.dummy_page)
    seq_lens += 1
    backend.fixed = backend.metadata(page_table, seq_lens, None)


# %% tags=["answer:prepare_for_replay"]
def prepare_for_replay(backend, batch):
    fixed, rows = backend.fixed, len(batch.padded_reqs)
    fixed.seq_lens.fill_(1)
    fixed.page_table.fill_(backend.context.page_table.dummy_page)
    fixed.seq_lens[:rows].copy_(batch.attn_metadata.seq_lens)
    fixed.page_table[:rows].copy_(batch.attn_metadata.page_table)
