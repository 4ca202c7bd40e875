# %% [markdown]
"""
Counts how many ranks have a size, and looks for the size in a sorted list.
"""


# %% tags=["answer:record_all"]
def record_all(rank):
    counts = {}
    for own in rank.all_gather(tuple(rank.sizes)):
        for size in own:
            counts[size] = counts.get(size, 0) + 1
    ranks = len(rank.all_gather(None))
    graphs = {}
    for size in sorted(counts)[::-1]:
        if counts[size] == ranks:
            graphs[size] = rank.record(size)
    return graphs


# %% tags=["answer:step"]
def step(rank, graphs, requests):
    own = [size for size in sorted(graphs) if size >= requests]
    wanted = rank.all_gather(own[0] if own else None)
    if None in wanted:
        rank.eager()
        return None
    graphs[max(wanted)].replay()
    return max(wanted)
