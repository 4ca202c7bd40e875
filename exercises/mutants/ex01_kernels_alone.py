# %% [markdown]
"""
Fails: 1

Launches once and lets the kernels run one after the other.
"""


# %% tags=["answer:starts"]
def starts(kernels, launch_us):
    found, now = [], launch_us
    for kernel in kernels:
        found.append(now)
        now += kernel
    return found
