# %% [markdown]
"""
Fails: 2

Scales small rows up to the limit as well.
"""


# %% tags=["answer:cap"]
def cap(logits, limit):
    return logits * (limit / logits.abs().amax(-1, keepdim=True))
