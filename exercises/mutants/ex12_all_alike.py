# %% [markdown]
"""
Fails: 4

Fits without weights: the longest times decide what a launch costs.
"""


# %% tags=["answer:launch_and_bandwidth"]
def launch_and_bandwidth(sizes, times):
    start, each = fit_line(sizes, times)
    return start, 1 / (each * 1e3)
