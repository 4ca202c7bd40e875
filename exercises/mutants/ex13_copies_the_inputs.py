# %% [markdown]
"""
Fails: 6

Gives the graph inputs of its own, cloned before the capture.
"""


# %% tags=["answer:record"]
def record(logits, temperatures, top_ks, generator):
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator)
    own = logits.clone(), temperatures.clone(), top_ks.clone()
    with cuda.graph(graph):
        tokens = sample(*own, generator)
    return graph, tokens
