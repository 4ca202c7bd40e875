# %% [markdown]
"""
Fails: 4

Fills the list up with token 0, which is a token.
"""


# %% tags=["answer:Ban"]
class Ban:
    def __init__(self, vocab):
        self.tokens = torch.zeros(vocab, dtype=torch.int64)

    def prepare(self, tokens):
        self.tokens.zero_()
        self.tokens[: len(tokens)] = torch.tensor(tokens, dtype=torch.int64)

    def step(self, logits):
        return logits.index_fill(1, self.tokens, float("-inf"))
