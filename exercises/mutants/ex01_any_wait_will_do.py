# %% [markdown]
"""
Fails: 4

Calls a step launch-bound as soon as the device waits at all.
"""


# %% tags=["answer:launch_bound"]
def launch_bound(kernels, launch_us):
    return waiting(kernels, launch_us)[1] > 0
