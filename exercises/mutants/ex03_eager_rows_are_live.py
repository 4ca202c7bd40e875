# %% [markdown]
"""
Fails: 2

Divides by the requests of all steps, the eager ones too.
"""


# %% tags=["answer:waste"]
def waste(counts, sizes):
    padded = 0
    live = sum(batch * steps for batch, steps in counts.items())
    for batch, steps in counts.items():
        size = next((size for size in sizes if size >= batch), None)
        if size is not None:
            padded += (size - batch) * steps
    return padded / live if live else 0.0
