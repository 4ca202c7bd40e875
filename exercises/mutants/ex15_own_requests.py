# %% [markdown]
"""
Fails: 2

Chooses the graph by its own requests.
"""


# %% tags=["answer:step"]
def step(rank, graphs, requests):
    size = min((s for s in graphs if s >= requests), default=None)
    rank.eager() if size is None else graphs[size].replay()
    return size
