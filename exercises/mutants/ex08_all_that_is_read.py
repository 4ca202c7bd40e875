# %% [markdown]
"""
Fails: 5

Takes everything that a kernel reads for an input, intermediates too.
"""


# %% tags=["answer:inputs_of"]
def inputs_of(kernels):
    return list(dict.fromkeys(one for k in kernels for one in k[2]))
