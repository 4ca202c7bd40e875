# %% [markdown]
"""
Fails: 5

Registers the generator, and lets the warm-up draw from it.
"""


# %% tags=["answer:record_draws"]
def record_draws(step, generator):
    step()
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with cuda.graph(graph):
        out = step()
    return graph, out
