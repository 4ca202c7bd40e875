# %% [markdown]
"""
Fails: 6

Forgets graphs that save nothing, or lose.
"""


# %% tags=["answer:pays_off"]
def pays_off(kernels, launch_us, graph_us, gap_us, capture_us):
    eager = starts(kernels, launch_us)[-1] + kernels[-1]
    saved = eager - graph_time(kernels, graph_us, gap_us)
    return -(-capture_us // saved)
