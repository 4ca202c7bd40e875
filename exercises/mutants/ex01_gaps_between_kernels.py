# %% [markdown]
"""
Fails: 3

Counts the gaps between kernels and not the wait for the first one.
"""


# %% tags=["answer:waiting"]
def waiting(kernels, launch_us):
    if not kernels:
        return 0, 0
    at = starts(kernels, launch_us)
    device_us = at[-1] - at[0] - sum(kernels[:-1])
    return at[-1] + kernels[-1] - len(kernels) * launch_us, device_us
