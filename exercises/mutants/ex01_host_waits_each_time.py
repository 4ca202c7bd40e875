# %% [markdown]
"""
Fails: 1

Launches the next kernel only when the one before it has ended.
"""


# %% tags=["answer:starts"]
def starts(kernels, launch_us):
    found, now = [], 0
    for kernel in kernels:
        now += launch_us
        found.append(now)
        now += kernel
    return found
