# %% [markdown]
"""
Fails: 3

Goes past the buffers in the way, but forgets that they have to be looked at from the bottom up.
"""


# %% tags=["answer:plan"]
def plan(lifetimes, alignment=512):
    offsets = {}
    for name in sorted(lifetimes, key=lambda name: lifetimes[name][1]):
        nbytes, offset = lifetimes[name][0], 0
        for other, place in offsets.items():
            if not alive_together(lifetimes[name], lifetimes[other]):
                continue
            end = place + lifetimes[other][0]
            if offset < end and place < offset + nbytes:
                offset = -(-end // alignment) * alignment
        offsets[name] = offset
    return offsets
