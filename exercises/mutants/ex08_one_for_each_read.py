# %% [markdown]
"""
Fails: 5

Names an input as often as it is read.
"""


# %% tags=["answer:inputs_of"]
def inputs_of(kernels):
    found, written = [], set()
    for _, out, reads, _ in kernels:
        found += [one for one in reads if one.name not in written]
        written.add(out.name)
    return found
