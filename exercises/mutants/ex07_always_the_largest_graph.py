# %% [markdown]
"""
Fails: 2

Replays the largest graph, which runs rows that nobody prepared.
"""


# %% tags=["answer:replay"]
def replay(runner, batch):
    runner.buffer.copy_from(batch)
    runner.context.attn_backend.prepare_for_replay(batch)
    runner.graph_map[runner.max_graph_bs].replay()
    return runner.buffer.logits[: batch.size].clone()
