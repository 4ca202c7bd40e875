# %% [markdown]
"""
Fails: 1

Runs a batch of a recorded size at the next larger one.
"""


# %% tags=["answer:waste"]
def waste(counts, sizes):
    live = padded = 0
    for batch, steps in counts.items():
        size = next((size for size in sizes if size > batch), None)
        if size is not None:
            live += batch * steps
            padded += (size - batch) * steps
    return padded / live if live else 0.0
