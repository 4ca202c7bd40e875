# %% [markdown]
"""
Fails: 4

Gives megabytes a second.
"""


# %% tags=["answer:launch_and_bandwidth"]
def launch_and_bandwidth(sizes, times):
    start, each = fit_line(sizes, times, [1 / t**2 for t in times])
    return start, 1 / each
