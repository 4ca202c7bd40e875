# %% [markdown]
"""
Fails: 3

Puts a buffer directly behind the one before it.
"""


# %% tags=["answer:plan"]
def plan(lifetimes, alignment=512):
    offsets = {}
    for name in sorted(lifetimes, key=lambda name: lifetimes[name][1]):
        lowest = 0
        for other in sorted(offsets, key=offsets.get):
            if alive_together(lifetimes[name], lifetimes[other]):
                if lowest + lifetimes[name][0] <= offsets[other]:
                    break
                lowest = max(lowest, offsets[other] + lifetimes[other][0])
        offsets[name] = lowest
    return offsets
