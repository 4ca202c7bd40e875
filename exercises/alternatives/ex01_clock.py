# %% [markdown]
"""
Two clocks that go on kernel by kernel, in floats, and every wait added up where it happens.
"""


# %% tags=["answer:starts"]
def starts(kernels, launch_us):
    times, host, device = [], 0.0, 0.0
    for kernel in kernels:
        host += launch_us
        if device < host:
            device = host
        times.append(device)
        device += kernel
    return times


# %% tags=["answer:waiting"]
def waiting(kernels, launch_us):
    device_us, free = 0, 0
    for start, kernel in zip(starts(kernels, launch_us), kernels):
        device_us += start - free
        free = start + kernel
    return [free - launch_us * len(kernels), device_us]


# %% tags=["answer:launch_bound"]
def launch_bound(kernels, launch_us):
    host, device = waiting(kernels, launch_us)
    if device > host:
        return True
    return False


# %% tags=["answer:graph_time"]
def graph_time(kernels, graph_us, gap_us):
    first, *others = kernels
    now = graph_us + first
    for kernel in others:
        now += gap_us + kernel
    return now


# %% tags=["answer:pays_off"]
def pays_off(kernels, launch_us, graph_us, gap_us, capture_us):
    eager = starts(kernels, launch_us)[-1] + kernels[-1]
    owed, steps = capture_us, 0
    while owed > 0:
        owed += graph_time(kernels, graph_us, gap_us) - eager
        steps += 1
        if owed >= capture_us:
            return None
    return steps
