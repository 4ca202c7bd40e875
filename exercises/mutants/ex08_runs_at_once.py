# %% [markdown]
"""
Fails: 1

Runs the step when the graph is made, as a warm-up that nobody asked for.
"""


# %% tags=["answer:Rerun"]
class Rerun:
    def __init__(self, step, batch):
        self.step, self.batch = step, batch
        step(batch)

    def replay(self):
        self.step(self.batch)
