# %% [markdown]
"""
Fails: 3

Turns the mask into numbers of rows, whose count depends on data as much.
"""


# %% tags=["answer:mean_of_alive"]
def mean_of_alive(values, alive):
    rows = values.index_select(0, alive.nonzero().flatten())
    return rows.sum(0) / alive.sum().clamp(min=1)
