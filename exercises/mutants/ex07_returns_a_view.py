# %% [markdown]
"""
Fails: 4

Returns the buffer's own memory.
"""


# %% tags=["answer:replay"]
def replay(runner, batch):
    runner.buffer.copy_from(batch)
    runner.context.attn_backend.prepare_for_replay(batch)
    runner.graph_map[batch.padded_size].replay()
    return runner.buffer.logits[: batch.size]
