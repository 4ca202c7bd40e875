# %% [markdown]
"""
Fails: 4

Weighs long times more, since they are measured better.
"""


# %% tags=["answer:launch_and_bandwidth"]
def launch_and_bandwidth(sizes, times):
    start, each = fit_line(sizes, times, [t**2 for t in times])
    return start, 1 / (each * 1e3)
