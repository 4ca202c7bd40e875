# %% [markdown]
"""
Fails: 6

Asks for less waste than the limit, not for at most as much.
"""


# %% tags=["answer:graphs_needed"]
def graphs_needed(counts, limit):
    for budget in range(1, len(counts) + 1):
        if waste(counts, best_list(counts, budget)) < limit:
            return budget
    return len(counts)
