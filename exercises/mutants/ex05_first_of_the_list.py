# %% [markdown]
"""
Fails: 1

Takes the first size for the largest; the list may begin with any.
"""


# %% tags=["answer:init_capture_graph"]
def init_capture_graph(backend, bs_list):
    table = backend.context.page_table
    shape = (bs_list[0], table.table.shape[1])
    backend.fixed = backend.metadata(
        torch.full(shape, table.dummy_page, dtype=torch.int32),
        torch.ones(bs_list[0], dtype=torch.int32),
        None,
    )
