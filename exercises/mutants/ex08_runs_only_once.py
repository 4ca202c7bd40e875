# %% [markdown]
"""
Fails: 1

Takes the first run's results for those of all replays.
"""


# %% tags=["answer:Rerun"]
class Rerun:
    def __init__(self, step, batch):
        self.step, self.batch, self.done = step, batch, False

    def replay(self):
        if not self.done:
            self.step(self.batch)
            self.done = True
