# %% [markdown]
"""
Fails: 6

Counts from 0 and returns the number of tries.
"""


# %% tags=["answer:graphs_needed"]
def graphs_needed(counts, limit):
    budget = 1
    while waste(counts, best_list(counts, budget)) > limit:
        budget += 1
    return budget + 1
