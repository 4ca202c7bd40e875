# %% [markdown]
"""
Fails: 4

Counts 2**30 bytes to a gigabyte.
"""


# %% tags=["answer:launch_and_bandwidth"]
def launch_and_bandwidth(sizes, times):
    start, each = fit_line(sizes, times, [1 / t**2 for t in times])
    return start, 1e6 / each / 2**30
