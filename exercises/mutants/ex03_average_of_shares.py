# %% [markdown]
"""
Fails: 2

Averages the waste of the steps, as if all had equally many requests.
"""


# %% tags=["answer:waste"]
def waste(counts, sizes):
    total = replayed = 0
    for batch, steps in counts.items():
        size = next((size for size in sizes if size >= batch), None)
        if size is not None:
            total += steps * (size - batch) / batch
            replayed += steps
    return total / replayed if replayed else 0.0
