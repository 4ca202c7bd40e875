# %% [markdown]
"""
Fails: 3

Gives the device's waiting first.
"""


# %% tags=["answer:waiting"]
def waiting(kernels, launch_us):
    if not kernels:
        return 0, 0
    step = starts(kernels, launch_us)[-1] + kernels[-1]
    return step - sum(kernels), step - len(kernels) * launch_us
