# %% [markdown]
"""
Fails: 3

Makes its copy before the replay has written anything.
"""


# %% tags=["answer:replay"]
def replay(runner, batch):
    runner.buffer.copy_from(batch)
    runner.context.attn_backend.prepare_for_replay(batch)
    logits = runner.buffer.logits[: batch.size].clone()
    runner.graph_map[batch.padded_size].replay()
    return logits
