# %% [markdown]
"""
Fails: 4

One behind the other: nothing overlaps, and nothing is used again.
"""


# %% tags=["answer:plan"]
def plan(lifetimes, alignment=512):
    offsets, end = {}, 0
    for name in sorted(lifetimes, key=lambda name: lifetimes[name][1]):
        offsets[name] = end
        end += -(-lifetimes[name][0] // alignment) * alignment
    return offsets
