# %% [markdown]
"""
Fails: 2

Takes the longest kernel for the pace of all of them.
"""


# %% tags=["answer:starts"]
def starts(kernels, launch_us):
    pace = max(launch_us, *kernels, 0)
    return [launch_us + at * pace for at in range(len(kernels))]
