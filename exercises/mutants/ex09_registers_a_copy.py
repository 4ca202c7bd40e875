# %% [markdown]
"""
Fails: 5

Registers another generator with the same state.
"""


# %% tags=["answer:record_draws"]
def record_draws(step, generator):
    before = generator.get_state()
    step()
    generator.set_state(before)
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator.clone_state())
    with cuda.graph(graph):
        out = step()
    return graph, out
