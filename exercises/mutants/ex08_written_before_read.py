# %% [markdown]
"""
Fails: 5

Notes a kernel's output before it looks at its inputs: in place is not seen.
"""


# %% tags=["answer:inputs_of"]
def inputs_of(kernels):
    found, written = {}, set()
    for _, out, reads, _ in kernels:
        written.add(out.name)
        for one in reads:
            if one.name not in written:
                found[one.name] = one
    return list(found.values())
