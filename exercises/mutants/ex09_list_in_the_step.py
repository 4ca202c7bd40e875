# %% [markdown]
"""
Fails: 4

Keeps the list, and still makes the tensor in the step.
"""


# %% tags=["answer:Ban"]
class Ban:
    def __init__(self, vocab):
        self.tokens = []

    def prepare(self, tokens):
        self.tokens = tokens

    def step(self, logits):
        return logits.index_fill(1, torch.tensor(self.tokens), float("-inf"))
