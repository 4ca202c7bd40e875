# %% [markdown]
"""
Fails: 4

Goes through the sizes in ascending order.
"""


# %% tags=["answer:capture_graphs"]
def capture_graphs(sizes, make_step):
    graphs, pool = {}, None
    for size in sorted(sizes):
        step = make_step(size)
        warm_up(step)
        graphs[size] = record(step, pool)
        pool = graphs[size].pool()
    return graphs
