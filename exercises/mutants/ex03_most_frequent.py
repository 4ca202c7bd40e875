# %% [markdown]
"""
Fails: 4

Takes the most frequent batches, and forgets that the largest must fit.
"""


# %% tags=["answer:best_list"]
def best_list(counts, budget):
    return sorted(sorted(counts, key=counts.get, reverse=True)[:budget])
