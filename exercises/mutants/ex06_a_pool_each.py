# %% [markdown]
"""
Fails: 5

Gives every graph a pool of its own.
"""


# %% tags=["answer:capture_graphs"]
def capture_graphs(sizes, make_step):
    graphs = {}
    for size in sorted(sizes, reverse=True):
        step = make_step(size)
        warm_up(step)
        graphs[size] = record(step, None)
    return graphs
