# %% [markdown]
"""
Fails: 5

Counts a gap for every kernel, the last one too.
"""


# %% tags=["answer:graph_time"]
def graph_time(kernels, graph_us, gap_us):
    return graph_us + sum(kernel + gap_us for kernel in kernels)
