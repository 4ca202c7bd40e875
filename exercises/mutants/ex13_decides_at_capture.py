# %% [markdown]
"""
Fails: 6

Looks before the capture whether anybody wants to draw.
"""


# %% tags=["answer:record"]
def record(logits, temperatures, top_ks, generator):
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator)
    greedy = bool((temperatures == 0).all())
    with cuda.graph(graph):
        if greedy:
            tokens = logits.argmax(dim=-1)
        else:
            tokens = sample(logits, temperatures, top_ks, generator)
    return graph, tokens
