# %% [markdown]
"""
Fails: 1

Divides the dummies by all rows of the graph.
"""


# %% tags=["answer:waste"]
def waste(counts, sizes):
    rows = padded = 0
    for batch, steps in counts.items():
        size = min((size for size in sizes if size >= batch), default=None)
        if size is not None:
            rows += size * steps
            padded += (size - batch) * steps
    return padded / rows if rows else 0.0
