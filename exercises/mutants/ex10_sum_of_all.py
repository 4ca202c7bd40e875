# %% [markdown]
"""
Fails: 2

Adds up all buffers, as if none ever died.
"""


# %% tags=["answer:peak_live"]
def peak_live(lifetimes):
    return sum(nbytes for nbytes, _, _ in lifetimes.values())
