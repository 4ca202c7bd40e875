# %% [markdown]
"""
No clock: each start is the latest that any earlier launch allows, and totals say who waits.
"""

# %% tags=["answer:starts"]
from itertools import accumulate


def starts(kernels, launch_us):
    run_before = [0, *accumulate(kernels)][: len(kernels)]
    slack = (launch_us * (n + 1) - run for n, run in enumerate(run_before))
    return [run + most for run, most in zip(run_before, accumulate(slack, max))]


# %% tags=["answer:waiting"]
def waiting(kernels, launch_us):
    launching, running = launch_us * len(kernels), sum(kernels)
    step = max(
        (start + us for start, us in zip(starts(kernels, launch_us), kernels)),
        default=0,
    )
    return (step - launching, step - running)


# %% tags=["answer:launch_bound"]
def launch_bound(kernels, launch_us):
    return launch_us * len(kernels) > sum(kernels)


# %% tags=["answer:graph_time"]
def graph_time(kernels, graph_us, gap_us):
    return graph_us - gap_us + sum(kernel + gap_us for kernel in kernels)


# %% tags=["answer:pays_off"]
from math import ceil


def pays_off(kernels, launch_us, graph_us, gap_us, capture_us):
    eager = waiting(kernels, launch_us)[1] + sum(kernels)
    graph = graph_time(kernels, graph_us, gap_us)
    if graph >= eager:
        return None
    return ceil(capture_us / (eager - graph))
