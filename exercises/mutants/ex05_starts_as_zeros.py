# %% [markdown]
"""
Fails: 2

Starts with zeros: page 0, which belongs to a request, and no token.
"""


# %% tags=["answer:init_capture_graph"]
def init_capture_graph(backend, bs_list):
    width, largest = backend.context.page_table.table.shape[1], max(bs_list)
    backend.fixed = backend.metadata(
        torch.zeros(largest, width, dtype=torch.int32),
        torch.zeros(largest, dtype=torch.int32),
        None,
    )
