# %% [markdown]
"""
Fails: 4

Compares a launch with the longest kernel.
"""


# %% tags=["answer:launch_bound"]
def launch_bound(kernels, launch_us):
    return max(kernels, default=launch_us) < launch_us
