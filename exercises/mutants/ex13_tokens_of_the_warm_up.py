# %% [markdown]
"""
Fails: 5

Returns the tokens of the warm-up.
"""


# %% tags=["answer:record"]
def record(logits, temperatures, top_ks, generator):
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator)
    tokens = sample(logits, temperatures, top_ks, generator)
    with cuda.graph(graph):
        sample(logits, temperatures, top_ks, generator)
    return graph, tokens
