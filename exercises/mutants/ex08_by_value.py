# %% [markdown]
"""
Fails: 5

Compares what buffers hold, so that two with the same numbers are one.
"""


# %% tags=["answer:inputs_of"]
def inputs_of(kernels):
    found, written = [], set()
    for _, out, reads, _ in kernels:
        for one in reads:
            seen = any(one.values == other.values for other in found)
            if one.name not in written and not seen:
                found.append(one)
        written.add(out.name)
    return found
