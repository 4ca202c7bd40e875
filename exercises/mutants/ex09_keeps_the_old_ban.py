# %% [markdown]
"""
Fails: 4

Never takes a token off the list.
"""


# %% tags=["answer:Ban"]
class Ban:
    def __init__(self, vocab):
        self.banned = torch.zeros(vocab, dtype=torch.bool)

    def prepare(self, tokens):
        self.banned[tokens] = True

    def step(self, logits):
        return logits.masked_fill(self.banned, float("-inf"))
