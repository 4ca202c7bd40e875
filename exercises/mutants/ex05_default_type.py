# %% [markdown]
"""
Fails: 1

Lets torch choose the types.
"""


# %% tags=["answer:init_capture_graph"]
def init_capture_graph(backend, bs_list):
    table, largest = backend.context.page_table, max(bs_list)
    shape = (largest, table.table.shape[1])
    backend.fixed = backend.metadata(
        torch.full(shape, table.dummy_page), torch.ones(largest), None
    )
