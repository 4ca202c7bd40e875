# %% [markdown]
"""
Fails: 2

Starts with the longest length, as if the capture had to see the largest case.
"""


# %% tags=["answer:init_capture_graph"]
def init_capture_graph(backend, bs_list):
    table, largest = backend.context.page_table, max(bs_list)
    width = table.table.shape[1]
    backend.fixed = backend.metadata(
        torch.full((largest, width), table.dummy_page, dtype=torch.int32),
        torch.full((largest,), width * 16, dtype=torch.int32),
        None,
    )
