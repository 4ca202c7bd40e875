# %% [markdown]
"""
Fails: 5

Takes the longer of kernel and gap, which is how launches behave.
"""


# %% tags=["answer:graph_time"]
def graph_time(kernels, graph_us, gap_us):
    return graph_us + sum(max(kernel, gap_us) for kernel in kernels)
