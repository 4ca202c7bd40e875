# %% [markdown]
"""
Fails: 2

Takes the average kernel for the pace, as one would for kernels that are alike.
"""


# %% tags=["answer:starts"]
def starts(kernels, launch_us):
    if not kernels:
        return []
    pace = max(launch_us, sum(kernels) / len(kernels))
    return [launch_us + at * pace for at in range(len(kernels))]
