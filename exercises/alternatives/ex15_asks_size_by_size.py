# %% [markdown]
"""
Asks for each size whether all have it, and empties the dict while it destroys.
"""


# %% tags=["answer:record_all"]
def record_all(rank):
    largest = max(max(own) for own in rank.all_gather(rank.sizes))
    return {
        size: rank.record(size)
        for size in range(largest, 0, -1)
        if all(rank.all_gather(size in rank.sizes))
    }


# %% tags=["answer:shut_down"]
def shut_down(rank, graphs):
    while graphs:
        graphs.popitem()[1].destroy()
    rank.close()
