# %% [markdown]
"""
Fails: 1

Lets a kernel start when its launch begins.
"""


# %% tags=["answer:starts"]
def starts(kernels, launch_us):
    found, free = [], 0
    for at, kernel in enumerate(kernels):
        found.append(max(at * launch_us, free))
        free = found[-1] + kernel
    return found
