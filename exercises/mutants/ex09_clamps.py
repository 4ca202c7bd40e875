# %% [markdown]
"""
Fails: 2

Cuts single values off instead of making the row smaller.
"""


# %% tags=["answer:cap"]
def cap(logits, limit):
    return logits.clamp(-limit, limit)
