# %% [markdown]
"""
Fails: 2

Forgets that a negative value may be the largest.
"""


# %% tags=["answer:cap"]
def cap(logits, limit):
    largest = logits.amax(-1, keepdim=True)
    return torch.where(largest > limit, logits * (limit / largest), logits)
