# %% [markdown]
"""
Takes medians from the standard library, and solves the normal equations.
"""

# %% tags=["answer:median_us"]
import statistics


def median_us(call, clock, warmup, rounds, calls):
    def one_round():
        begin = clock()
        for _ in range(calls):
            call()
        return clock() - begin

    for _ in range(warmup):
        call()
    seconds = statistics.median([one_round() for _ in range(rounds)])
    return seconds * 1e6 / calls


# %% tags=["answer:fit_line"]
def fit_line(x, times, weights=None):
    if weights is None:
        weights = [1] * len(x)
    if min(x) == max(x):
        raise ValueError("all x are the same")
    n = sx = st = sxx = sxt = 0.0
    for w, a, t in zip(weights, x, times):
        n, sx, st = n + w, sx + w * a, st + w * t
        sxx, sxt = sxx + w * a * a, sxt + w * a * t
    det = n * sxx - sx * sx
    return (sxx * st - sx * sxt) / det, (n * sxt - sx * st) / det


# %% tags=["answer:launch_and_bandwidth"]
def launch_and_bandwidth(sizes, times):
    kilobytes = [size / 1e3 for size in sizes]  # 1 KB/us is 1 GB/s
    launch, us_per_kb = fit_line(kilobytes, times, [t**-2 for t in times])
    return launch, 1 / us_per_kb


# %% tags=["answer:fit_rounds"]


def fit_rounds(sizes, rounds):
    columns = [[one[k] for one in rounds] for k in range(len(sizes))]
    return launch_and_bandwidth(sizes, list(map(statistics.median, columns)))
