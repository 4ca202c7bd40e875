# %% [markdown]
"""
Fails: 3

Returns all rows that were computed.
"""


# %% tags=["answer:replay"]
def replay(runner, batch):
    runner.buffer.copy_from(batch)
    runner.context.attn_backend.prepare_for_replay(batch)
    runner.graph_map[batch.padded_size].replay()
    return runner.buffer.logits[: batch.padded_size].clone()
