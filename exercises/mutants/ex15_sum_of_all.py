# %% [markdown]
"""
Fails: 2

Adds the requests of all ranks up.
"""


# %% tags=["answer:step"]
def step(rank, graphs, requests):
    most = sum(rank.all_gather(requests))
    size = min((s for s in graphs if s >= most), default=None)
    rank.eager() if size is None else graphs[size].replay()
    return size
