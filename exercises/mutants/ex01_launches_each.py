# %% [markdown]
"""
Fails: 5

Pays the graph's launch for every kernel.
"""


# %% tags=["answer:graph_time"]
def graph_time(kernels, graph_us, gap_us):
    return len(kernels) * graph_us + sum(kernels) + (len(kernels) - 1) * gap_us
