# %% [markdown]
"""
Fails: 2

Looks for a graph of as many rows as there are requests.
"""


# %% tags=["answer:replay"]
def replay(runner, batch):
    runner.buffer.copy_from(batch)
    runner.context.attn_backend.prepare_for_replay(batch)
    runner.graph_map[batch.size].replay()
    return runner.buffer.logits[: batch.size].clone()
