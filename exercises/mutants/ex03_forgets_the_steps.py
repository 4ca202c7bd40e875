# %% [markdown]
"""
Fails: 2

Counts every batch once, however many steps had it.
"""


# %% tags=["answer:waste"]
def waste(counts, sizes):
    live = padded = 0
    for batch in counts:
        size = next((size for size in sizes if size >= batch), None)
        if size is not None:
            live += batch
            padded += size - batch
    return padded / live if live else 0.0
