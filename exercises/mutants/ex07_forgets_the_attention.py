# %% [markdown]
"""
Fails: 2

Copies the tokens, and not what attention reads.
"""


# %% tags=["answer:replay"]
def replay(runner, batch):
    runner.buffer.copy_from(batch)
    runner.graph_map[batch.padded_size].replay()
    return runner.buffer.logits[: batch.size].clone()
