# %% [markdown]
"""
Fails: 5

Puts the generator back, and does not tell the graph of it.
"""


# %% tags=["answer:record_draws"]
def record_draws(step, generator):
    before = generator.get_state()
    step()
    generator.set_state(before)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = step()
    return graph, out
