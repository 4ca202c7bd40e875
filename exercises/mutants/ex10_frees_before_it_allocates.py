# %% [markdown]
"""
Fails: 2

Frees what a kernel reads before it allocates what the kernel writes.
"""


# %% tags=["answer:peak_live"]
def peak_live(lifetimes):
    events = []
    for nbytes, first, last in lifetimes.values():
        events += [(first, 1, nbytes), (last, 0, -nbytes)]
    live = most = 0
    for _, _, change in sorted(events):
        live += change
        most = max(most, live)
    return most
