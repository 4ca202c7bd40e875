# %% [markdown]
"""
Fails: 5

Runs eagerly and tells nobody.
"""


# %% tags=["answer:run_step"]
def run_step(runner, batch, eager):
    if can_use_graph(runner, batch):
        return replay(runner, batch)
    return eager(batch)
