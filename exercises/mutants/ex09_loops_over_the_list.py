# %% [markdown]
"""
Fails: 4

Loops over the list in the step, which writes the tokens of the capture into the graph.
"""


# %% tags=["answer:Ban"]
class Ban:
    def __init__(self, vocab):
        self.tokens = []

    def prepare(self, tokens):
        self.tokens = tokens

    def step(self, logits):
        out = logits.clone()
        for token in self.tokens:
            out[:, token].fill_(float("-inf"))
        return out
