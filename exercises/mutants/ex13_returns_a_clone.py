# %% [markdown]
"""
Fails: 5

Returns a clone, made when the capture is over.
"""


# %% tags=["answer:record"]
def record(logits, temperatures, top_ks, generator):
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with cuda.graph(graph):
        tokens = sample(logits, temperatures, top_ks, generator)
    return graph, tokens.clone()
