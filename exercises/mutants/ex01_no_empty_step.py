# %% [markdown]
"""
Fails: 3

Looks for the last kernel of a step that has none.
"""


# %% tags=["answer:waiting"]
def waiting(kernels, launch_us):
    step = starts(kernels, launch_us)[-1] + kernels[-1]
    return step - len(kernels) * launch_us, step - sum(kernels)
