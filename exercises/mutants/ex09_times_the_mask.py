# %% [markdown]
"""
Fails: 3

Multiplies by the mask: NaN times zero is NaN.
"""


# %% tags=["answer:mean_of_alive"]
def mean_of_alive(values, alive):
    return (values * alive[:, None]).sum(0) / alive.sum().clamp(min=1)
