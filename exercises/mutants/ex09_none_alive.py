# %% [markdown]
"""
Fails: 3

Divides by zero where no row is alive.
"""


# %% tags=["answer:mean_of_alive"]
def mean_of_alive(values, alive):
    return torch.where(alive[:, None], values, 0.0).sum(0) / alive.sum()
