# %% [markdown]
"""
Fails: 3

Forgets to hand the pool on.
"""


# %% tags=["answer:record"]
def record(step, pool):
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        step()
    return graph
