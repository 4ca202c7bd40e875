# %% [markdown]
"""
Fails: 4

Takes the shortest time for the launch.
"""


# %% tags=["answer:launch_and_bandwidth"]
def launch_and_bandwidth(sizes, times):
    start, each = fit_line(sizes, times, [1 / t**2 for t in times])
    return min(times), 1 / (each * 1e3)
