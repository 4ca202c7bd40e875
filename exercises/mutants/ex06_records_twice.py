# %% [markdown]
"""
Fails: 3

Warms up inside of the capture, so that every replay does the work twice.
"""


# %% tags=["answer:record"]
def record(step, pool):
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, pool=pool):
        step()
        step()
    return graph
