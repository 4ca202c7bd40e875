# %% [markdown]
"""
Fails: 3

Rounds down to the alignment, into the buffer below.
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
                end = offsets[other] + lifetimes[other][0]
                lowest = max(lowest, end // alignment * alignment)
        offsets[name] = lowest
    return offsets
