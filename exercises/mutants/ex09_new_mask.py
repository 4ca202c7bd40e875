# %% [markdown]
"""
Fails: 4

Makes a new mask for each list, where the graph does not look.
"""


# %% tags=["answer:Ban"]
class Ban:
    def __init__(self, vocab):
        self.vocab = vocab

    def prepare(self, tokens):
        self.banned = torch.zeros(self.vocab, dtype=torch.bool)
        self.banned[tokens] = True

    def step(self, logits):
        return logits.masked_fill(self.banned, float("-inf"))
