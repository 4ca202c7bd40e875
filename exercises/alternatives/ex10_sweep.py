# %% [markdown]
"""
Sweeps over births and deaths, keeps free gaps, and lets bisect find segments.
"""


# %% tags=["answer:alive_together"]
def alive_together(a, b):
    return max(a[1], b[1]) <= min(a[2], b[2])


# %% tags=["answer:peak_live"]
from itertools import accumulate


def peak_live(lifetimes):
    events = []
    for nbytes, first, last in lifetimes.values():
        events += [(first, 0, nbytes), (last, 1, -nbytes)]
    return max(accumulate(change for _, _, change in sorted(events)), default=0)


# %% tags=["answer:plan"]
def plan(lifetimes, alignment=512):
    live, offsets = [], {}
    for name, (nbytes, first, last) in sorted(
        lifetimes.items(), key=lambda item: item[1][1]
    ):
        live = sorted(place for place in live if place[2] >= first)
        at = 0
        for start, end, _ in live:
            if start - at >= nbytes:
                break
            if end > at:
                at = (end + alignment - 1) // alignment * alignment
        offsets[name] = at
        live.append((at, at + nbytes, last))
    return offsets


# %% tags=["answer:reserved"]
from bisect import bisect_left, insort


def reserved(graphs):
    free = []
    for blocks in graphs:
        used = []
        for block in blocks:
            at = bisect_left(free, block)
            used.append(free.pop(at) if at < len(free) else block)
        for segment in used:
            insort(free, segment)
    return sum(free)
