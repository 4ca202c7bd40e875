# %% [markdown]
"""
Fails: 2

Takes the largest value of the whole batch.
"""


# %% tags=["answer:cap"]
def cap(logits, limit):
    largest = logits.abs().max()
    return torch.where(largest > limit, logits * (limit / largest), logits)
