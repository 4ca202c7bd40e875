# %% [markdown]
"""
Fails: 4

Clones the whole buffer and returns a slice, which keeps all of it.
"""


# %% tags=["answer:replay"]
def replay(runner, batch):
    runner.buffer.copy_from(batch)
    runner.context.attn_backend.prepare_for_replay(batch)
    runner.graph_map[batch.padded_size].replay()
    return runner.buffer.logits.clone()[: batch.size]
