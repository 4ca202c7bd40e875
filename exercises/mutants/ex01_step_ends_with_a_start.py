# %% [markdown]
"""
Fails: 3

Takes the start of the last kernel for the end of the step.
"""


# %% tags=["answer:waiting"]
def waiting(kernels, launch_us):
    if not kernels:
        return 0, 0
    step = starts(kernels, launch_us)[-1]
    return step - len(kernels) * launch_us, step - sum(kernels[:-1])
