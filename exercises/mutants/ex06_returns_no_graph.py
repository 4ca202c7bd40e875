# %% [markdown]
"""
Fails: 3

Records, and forgets to return it.
"""


# %% tags=["answer:record"]
def record(step, pool):
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, pool=pool):
        step()
