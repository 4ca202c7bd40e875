# %% [markdown]
"""
Fails: 4

Warms up once, for the largest size, and records the others without.
"""


# %% tags=["answer:capture_graphs"]
def capture_graphs(sizes, make_step):
    graphs, pool = {}, None
    for size in sorted(sizes, reverse=True):
        step = make_step(size)
        if not graphs:
            warm_up(step)
        graphs[size] = record(step, pool)
        pool = graphs[size].pool()
    return graphs
