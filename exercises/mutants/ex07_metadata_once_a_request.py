# %% [markdown]
"""
Fails: 6

Prepares the attention when the requests change, as if pages and lengths did not grow.
"""

# %% tags=["answer:replay"]
prepared_for = []


def replay(runner, batch):
    runner.buffer.copy_from(batch)
    if batch.reqs != prepared_for:
        runner.context.attn_backend.prepare_for_replay(batch)
        prepared_for[:] = batch.reqs
    runner.graph_map[batch.padded_size].replay()
    return runner.buffer.logits[: batch.size].clone()
