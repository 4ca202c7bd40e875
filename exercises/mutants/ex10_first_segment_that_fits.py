# %% [markdown]
"""
Fails: 6

Takes the first segment that is large enough, not the smallest.
"""


# %% tags=["answer:reserved"]
def reserved(graphs):
    segments = []
    for blocks in graphs:
        free = list(segments)
        for block in blocks:
            fits = next((size for size in free if size >= block), None)
            if fits is None:
                segments.append(block)
            else:
                free.remove(fits)
    return sum(segments)
