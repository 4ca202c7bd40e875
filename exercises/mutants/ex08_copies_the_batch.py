# %% [markdown]
"""
Fails: 1

Keeps a copy of the batch, so that nobody can refresh it.
"""

# %% tags=["answer:Rerun"]
from copy import deepcopy


class Rerun:
    def __init__(self, step, batch):
        self.step, self.batch = step, deepcopy(batch)

    def replay(self):
        self.step(self.batch)
