# %% [markdown]
"""
Fails: 2

Forgets the step that has no buffers.
"""


# %% tags=["answer:peak_live"]
def peak_live(lifetimes):
    return max(
        sum(
            size
            for size, first, last in lifetimes.values()
            if first <= at <= last
        )
        for _, at, _ in lifetimes.values()
    )
