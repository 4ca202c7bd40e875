# %% [markdown]
"""
Fails: 4

Copies into one of two places in turn, so that a result survives the next replay and not the one after.
"""

# %% tags=["answer:replay"]
places = {}


def replay(runner, batch):
    runner.buffer.copy_from(batch)
    runner.context.attn_backend.prepare_for_replay(batch)
    runner.graph_map[batch.padded_size].replay()
    logits = runner.buffer.logits[: batch.size]
    turn = places["turn"] = 1 - places.get("turn", 0)
    place = places.setdefault((turn, batch.size), logits.clone())
    return place.copy_(logits)
