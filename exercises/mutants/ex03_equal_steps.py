# %% [markdown]
"""
Fails: 4

Spreads the sizes evenly, as an engine's list does.
"""


# %% tags=["answer:best_list"]
def best_list(counts, budget):
    top = max(counts)
    return sorted({-(-top * part // budget) for part in range(1, budget + 1)})
