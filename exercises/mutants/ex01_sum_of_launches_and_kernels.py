# %% [markdown]
"""
Fails: 6

Takes launches and kernels together for the eager step, as if nothing overlapped.
"""


# %% tags=["answer:pays_off"]
def pays_off(kernels, launch_us, graph_us, gap_us, capture_us):
    eager = len(kernels) * launch_us + sum(kernels)
    saved = eager - graph_time(kernels, graph_us, gap_us)
    return -(-capture_us // saved) if saved > 0 else None
