# %% [markdown]
"""
Fails: 6

Keeps one place for the results of the same requests, and so overwrites what it returned a step before.
"""

# %% tags=["answer:replay"]
results = {}


def replay(runner, batch):
    runner.buffer.copy_from(batch)
    runner.context.attn_backend.prepare_for_replay(batch)
    runner.graph_map[batch.padded_size].replay()
    logits = runner.buffer.logits[: batch.size]
    requests = tuple(req.uid for req in batch.reqs)
    place = results.setdefault(requests, logits.clone())
    return place.copy_(logits)
