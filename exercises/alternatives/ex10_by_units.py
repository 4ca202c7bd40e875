# %% [markdown]
"""
Tries every aligned offset from the bottom, and marks the bytes of each kernel.
"""


# %% tags=["answer:alive_together"]
def alive_together(a, b):
    return not (a[2] < b[1] or b[2] < a[1])


# %% tags=["answer:peak_live"]
def peak_live(lifetimes):
    live = {}
    for nbytes, first, last in lifetimes.values():
        for kernel in range(first, last + 1):
            live[kernel] = live.get(kernel, 0) + nbytes
    return max(live.values()) if live else 0


# %% tags=["answer:plan"]
from itertools import count


def plan(lifetimes, alignment=512):
    offsets = {}
    for name in sorted(lifetimes, key=lambda name: lifetimes[name][1]):
        size = lifetimes[name][0]
        rivals = [
            other
            for other in offsets
            if alive_together(lifetimes[name], lifetimes[other])
        ]
        offsets[name] = next(
            at
            for at in count(0, alignment)
            if all(
                at + size <= offsets[other]
                or offsets[other] + lifetimes[other][0] <= at
                for other in rivals
            )
        )
    return offsets


# %% tags=["answer:reserved"]
def reserved(graphs):
    segments = []
    for blocks in graphs:
        taken = [False] * len(segments)
        for block in blocks:
            best = None
            for at, size in enumerate(segments):
                if (
                    size >= block
                    and not taken[at]
                    and (best is None or size < segments[best])
                ):
                    best = at
            if best is None:
                segments.append(block)
                taken.append(True)
            else:
                taken[best] = True
    return sum(segments)
