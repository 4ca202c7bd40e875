# %% [markdown]
"""
Picks the rows by number, which copies them, and finds the graph by the number of rows.
"""


# %% tags=["answer:can_use_graph"]
def can_use_graph(runner, batch):
    return batch.phase == "decode" and 0 < len(batch.reqs) <= max(
        runner.graph_bs_list, default=0
    )


# %% tags=["answer:replay"]
def replay(runner, batch):
    runner.buffer.copy_from(batch)
    runner.context.attn_backend.prepare_for_replay(batch)
    graph = runner.graph_map[len(batch.padded_reqs)]
    graph.replay()
    return runner.buffer.logits[list(range(len(batch.reqs)))]
