# %% [markdown]
"""
Fails: 3

Divides by the number of rows.
"""


# %% tags=["answer:mean_of_alive"]
def mean_of_alive(values, alive):
    return torch.where(alive[:, None], values, 0.0).mean(0)
