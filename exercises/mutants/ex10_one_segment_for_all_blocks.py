# %% [markdown]
"""
Fails: 6

Lets two blocks of one graph have the same segment.
"""


# %% tags=["answer:reserved"]
def reserved(graphs):
    segments = []
    for blocks in graphs:
        for block in blocks:
            if not any(size >= block for size in segments):
                segments.append(block)
    return sum(segments)
