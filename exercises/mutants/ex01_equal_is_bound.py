# %% [markdown]
"""
Fails: 4

Counts equally long waits as launch-bound.
"""


# %% tags=["answer:launch_bound"]
def launch_bound(kernels, launch_us):
    host_us, device_us = waiting(kernels, launch_us)
    return device_us >= host_us
