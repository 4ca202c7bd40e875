# %% [markdown]
"""
Fails: 4

Takes the list to be in ascending order.
"""


# %% tags=["answer:capture_graphs"]
def capture_graphs(sizes, make_step):
    graphs, pool = {}, None
    for size in sizes[::-1]:
        step = make_step(size)
        warm_up(step)
        graphs[size] = record(step, pool)
        pool = graphs[size].pool()
    return graphs
