# %% [markdown]
"""
Fails: 1

Takes a buffer for dead at the kernel that still reads it.
"""


# %% tags=["answer:alive_together"]
def alive_together(a, b):
    return a[1] < b[2] and b[1] < a[2]
