# %% [markdown]
"""
Fails: 5

Asks for a pool handle inside of the loop.
"""


# %% tags=["answer:capture_graphs"]
def capture_graphs(sizes, make_step):
    graphs = {}
    for size in sorted(sizes, reverse=True):
        step = make_step(size)
        warm_up(step)
        graphs[size] = record(step, cuda.graph_pool_handle())
    return graphs
