# %% [markdown]
"""
Fails: 4

Does not tell the graph of the generator.
"""


# %% tags=["answer:record"]
def record(logits, temperatures, top_ks, generator):
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        tokens = sample(logits, temperatures, top_ks, generator)
    return graph, tokens
