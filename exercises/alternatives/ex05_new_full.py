# %% [markdown]
"""
Makes the buffers from the engine's table, goes over the fields, and assigns to slices.
"""


# %% tags=["answer:init_capture_graph"]
def init_capture_graph(backend, bs_list):
    pages = backend.context.page_table
    rows = sorted(bs_list)[-1]
    table = pages.table.new_full((rows, pages.table.size(1)), pages.dummy_page)
    backend.fixed = backend.metadata(table, table.new_ones(rows), None)


# %% tags=["answer:prepare_for_capture"]
def prepare_for_capture(backend, batch):
    fixed = [backend.fixed.page_table, backend.fixed.seq_lens]
    views = [tensor.narrow(0, 0, batch.padded_size) for tensor in fixed]
    batch.attn_metadata = backend.metadata(*views, last_indices=None)


# %% tags=["answer:prepare_for_replay"]
def prepare_for_replay(backend, batch):
    for name in ("page_table", "seq_lens"):
        target = getattr(backend.fixed, name)
        target[: batch.padded_size] = getattr(batch.attn_metadata, name)
