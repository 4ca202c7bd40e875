# %% [markdown]
"""
Fails: 4

Asks whether most kernels are shorter than a launch.
"""


# %% tags=["answer:launch_bound"]
def launch_bound(kernels, launch_us):
    short = [kernel for kernel in kernels if kernel < launch_us]
    return len(short) > len(kernels) / 2
