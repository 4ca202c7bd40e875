# %% [markdown]
"""
Fails: 4

Sorts the engine's own list.
"""


# %% tags=["answer:capture_graphs"]
def capture_graphs(sizes, make_step):
    graphs, pool = {}, None
    sizes.sort(reverse=True)
    for size in sizes:
        step = make_step(size)
        warm_up(step)
        graphs[size] = record(step, pool)
        pool = graphs[size].pool()
    return graphs
