# %% [markdown]
"""
Fails: 5

Places the buffers in the order in which the dict has them.
"""


# %% tags=["answer:plan"]
def plan(lifetimes, alignment=512):
    offsets = {}
    for name, (nbytes, _, _) in lifetimes.items():
        lowest = 0
        for other in sorted(offsets, key=offsets.get):
            if alive_together(lifetimes[name], lifetimes[other]):
                if lowest + nbytes <= offsets[other]:
                    break
                end = offsets[other] + lifetimes[other][0]
                lowest = max(lowest, -(-end // alignment) * alignment)
        offsets[name] = lowest
    return offsets
