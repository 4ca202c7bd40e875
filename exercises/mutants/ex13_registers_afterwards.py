# %% [markdown]
"""
Fails: 4

Tells the graph of the generator when the capture is over.
"""


# %% tags=["answer:record"]
def record(logits, temperatures, top_ks, generator):
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        tokens = sample(logits, temperatures, top_ks, generator)
    graph.register_generator_state(generator)
    return graph, tokens
