# %% [markdown]
"""
Fails: 2

Replays first, and copies for the next step.
"""


# %% tags=["answer:replay"]
def replay(runner, batch):
    runner.buffer.copy_from(batch)
    runner.graph_map[batch.padded_size].replay()
    runner.context.attn_backend.prepare_for_replay(batch)
    return runner.buffer.logits[: batch.size].clone()
