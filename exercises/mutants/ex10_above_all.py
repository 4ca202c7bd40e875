# %% [markdown]
"""
Fails: 4

Goes above everything that is in the way, and leaves gaps unused.
"""


# %% tags=["answer:plan"]
def plan(lifetimes, alignment=512):
    offsets = {}
    for name in sorted(lifetimes, key=lambda name: lifetimes[name][1]):
        ends = [
            offsets[other] + lifetimes[other][0]
            for other in offsets
            if alive_together(lifetimes[name], lifetimes[other])
        ]
        offsets[name] = -(-max(ends, default=0) // alignment) * alignment
    return offsets
