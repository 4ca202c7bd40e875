# %% [markdown]
"""
Fails: 2

Returns at once where there is nothing to do.
"""


# %% tags=["answer:step"]
def step(rank, graphs, requests):
    if requests == 0:
        return None
    most = max(rank.all_gather(requests))
    size = min((s for s in graphs if s >= most), default=None)
    rank.eager() if size is None else graphs[size].replay()
    return size
