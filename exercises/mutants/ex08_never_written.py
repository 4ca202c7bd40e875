# %% [markdown]
"""
Fails: 5

Leaves out what the graph writes later, like a cache that it first reads.
"""


# %% tags=["answer:inputs_of"]
def inputs_of(kernels):
    outs = [out for _, out, _, _ in kernels]
    return list(
        dict.fromkeys(one for k in kernels for one in k[2] if one not in outs)
    )
