# %% [markdown]
"""
Fails: 5

Counts every step as one without a graph.
"""


# %% tags=["answer:run_step"]
def run_step(runner, batch, eager):
    runner.note_eager(batch)
    if can_use_graph(runner, batch):
        return replay(runner, batch)
    return eager(batch)
