# %% [markdown]
"""
Fails: 1

Forgets that the device may still be busy.
"""


# %% tags=["answer:starts"]
def starts(kernels, launch_us):
    return [(at + 1) * launch_us for at in range(len(kernels))]
