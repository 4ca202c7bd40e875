# %% [markdown]
"""
Fails: 1

Makes a row for each size of the list.
"""


# %% tags=["answer:init_capture_graph"]
def init_capture_graph(backend, bs_list):
    table, rows = backend.context.page_table, len(bs_list)
    shape = (rows, table.table.shape[1])
    backend.fixed = backend.metadata(
        torch.full(shape, table.dummy_page, dtype=torch.int32),
        torch.ones(rows, dtype=torch.int32),
        None,
    )
