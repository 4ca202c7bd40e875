# %% [markdown]
"""
Fails: 4

Takes the largest batch and the most frequent others.
"""


# %% tags=["answer:best_list"]
def best_list(counts, budget):
    top = max(counts)
    others = sorted(
        (b for b in counts if b != top), key=counts.get, reverse=True
    )
    return sorted([top, *others[: budget - 1]])
