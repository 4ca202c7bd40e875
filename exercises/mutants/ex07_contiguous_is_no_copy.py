# %% [markdown]
"""
Fails: 4

Takes contiguous() for a copy; the rows are contiguous already.
"""


# %% tags=["answer:replay"]
def replay(runner, batch):
    runner.buffer.copy_from(batch)
    runner.context.attn_backend.prepare_for_replay(batch)
    runner.graph_map[batch.padded_size].replay()
    return runner.buffer.logits[: batch.size].detach().contiguous()
