# %% [markdown]
"""
Fails: 2

Asks with one bool for all rows, which is still a read.
"""


# %% tags=["answer:cap"]
def cap(logits, limit):
    largest = logits.abs().amax(-1, keepdim=True)
    if (largest > limit).any():
        logits = logits * (limit / largest).clamp(max=1.0)
    return logits.clone()
