# %% [markdown]
"""
Uses the package's own search by halves.
"""

# %% tags=["answer:waste"]
from onelaunch import padding


def waste(counts, sizes):
    return padding.waste(counts, sizes).share


# %% tags=["answer:eager_share"]
def eager_share(counts, sizes):
    from onelaunch import padding

    return padding.waste(counts, sizes).eager_steps / max(
        1, sum(counts.values())
    )


# %% tags=["answer:best_list"]
def best_list(counts, budget):
    from onelaunch import padding

    return padding.best_sizes(counts, budget)


# %% tags=["answer:graphs_needed"]
def graphs_needed(counts, limit):
    low, high = 1, len(counts)
    while low < high:
        middle = (low + high) // 2
        if waste(counts, best_list(counts, middle)) <= limit:
            high = middle
        else:
            low = middle + 1
    return low
