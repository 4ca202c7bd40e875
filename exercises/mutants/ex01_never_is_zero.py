# %% [markdown]
"""
Fails: 6

Answers 0 where a graph never pays off.
"""


# %% tags=["answer:pays_off"]
def pays_off(kernels, launch_us, graph_us, gap_us, capture_us):
    eager = starts(kernels, launch_us)[-1] + kernels[-1]
    saved = eager - graph_time(kernels, graph_us, gap_us)
    return -(-capture_us // saved) if saved > 0 else 0
