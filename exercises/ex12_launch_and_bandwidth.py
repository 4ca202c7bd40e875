# %% [markdown]
"""
# Exercise 12: launch cost and bandwidth from timings

A kernel that moves memory takes `launch + bytes / bandwidth`. You write what measures a time, what lays a line through
times, and what reads both numbers off it. In the end it measures your machine.

*About 40 minutes. Medium. You need [chapter 1](../notebooks/01_what_a_launch_costs.ipynb); no GPU.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex12_launch_and_bandwidth.ipynb`
judges all of it, and `--hint` helps.

The checks ask with simulated timings, whose launch cost and bandwidth they know. Plain Python is enough; results are
floats.
"""

# %%
import random
import time
from collections.abc import Callable, Sequence

from onelaunch.grading import attempt, check

# %% [markdown]
"""
## Measure

`median_us(call, clock, warmup, rounds, calls)` is the time of one `call()`, in microseconds.

- Runs `call()` `warmup` times first; those do not count.
- Then there are `rounds` rounds. Each reads `clock()`, runs `call()` `calls` times, and reads `clock()` again. `clock()`
  is the time in **seconds**. The round's time is that of one call, its share of the round.
- Returns the median of the rounds' times: the middle one, or the mean of the two middle ones. So a round in which
  another program took the processor does not count.
- `warmup` is 0 or more, `rounds` and `calls` are 1 or more. Nothing else is run.
"""


# %% tags=["answer:median_us"]
def median_us(
    call: Callable[[], object],
    clock: Callable[[], float],
    warmup: int,
    rounds: int,
    calls: int,
) -> float:
    """The median time of one `call()`, in microseconds."""
    # ANSWER
    for _ in range(warmup):
        call()
    times = []
    for _ in range(rounds):
        start = clock()
        for _ in range(calls):
            call()
        times.append((clock() - start) / calls * 1e6)
    times.sort()
    return (times[rounds // 2] + times[(rounds - 1) // 2]) / 2


# %% tags=["try"]
with attempt():
    print(median_us(lambda: sum(range(100)), time.perf_counter, 10, 20, 50))

# %% tags=["check:1"]
check("ex12", 1)

# %% [markdown]
"""
## Fit

`fit_line(x, times, weights)` is the line `start + each * x` with the least sum of
`weight * (time - start - each * x) ** 2`.

- `x`, `times` and `weights` have the same length. Weights are above 0; only their ratios matter. `weights=None` weighs
  all points alike.
- Returns `(start, each)`. Raises `ValueError` for fewer than two different `x`: no line is decided by those.

With the weighted means of `x` and of the times, `each` is the weighted sum of
`(x - mean_x) * (time - mean_time)` over that of `(x - mean_x) ** 2`, and the line goes through the means.
"""


# %% tags=["answer:fit_line"]
def fit_line(
    x: Sequence[float],
    times: Sequence[float],
    weights: Sequence[float] | None = None,
) -> tuple[float, float]:
    """Start and slope of the line with the least weighted squares."""
    # ANSWER
    if len(set(x)) < 2:
        raise ValueError(f"a line needs two different x, found {list(x)}")
    weights = weights or [1.0] * len(x)
    points = list(zip(weights, x, times, strict=True))
    total = sum(weights)
    mean_x = sum(w * a for w, a, _ in points) / total
    mean_time = sum(w * t for w, _, t in points) / total
    both = sum(w * (a - mean_x) * (t - mean_time) for w, a, t in points)
    each = both / sum(w * (a - mean_x) ** 2 for w, a, _ in points)
    return mean_time - each * mean_x, each


# %% tags=["check:2"]
check("ex12", 2)

# %% tags=["check:3"]
check("ex12", 3)

# %% [markdown]
"""
## Launch cost and bandwidth

Timings are off by a share of themselves, about one per cent each. One per cent of the longest time can be more than the
whole launch. So weigh each point by `1 / time ** 2`: then one per cent counts alike everywhere.

`launch_and_bandwidth(sizes, times)` fits so.

- `sizes`: bytes that each kernel moves. `times`: microseconds, above 0.
- Returns `(launch_us, gb_per_s)`: the time of a kernel that moves nothing, in microseconds, and the bandwidth in
  gigabytes (10⁹ bytes) a second.
"""


# %% tags=["answer:launch_and_bandwidth"]
def launch_and_bandwidth(
    sizes: Sequence[int], times: Sequence[float]
) -> tuple[float, float]:
    """Launch cost in microseconds and bandwidth in GB/s."""
    # ANSWER
    start, each = fit_line(sizes, times, [1 / t**2 for t in times])
    return start, 1 / (each * 1e3)


# %% [markdown]
"""
Six timings that are simulated, with a launch of 4 µs and 2,000 GB/s:
"""

# %% tags=["try"]
with attempt():
    noise = random.Random(12)
    sizes = [4**k * 1_000_000 for k in range(6)]
    times = [(4 + s / 2e6) * noise.gauss(1, 0.01) for s in sizes]
    print("weighted:  ", launch_and_bandwidth(sizes, times))
    print("all alike: ", fit_line(sizes, times)[0], "µs a launch")

# %% tags=["check:4"]
check("ex12", 4)

# %% [markdown]
"""
## Outliers

`fit_rounds(sizes, rounds)` takes the rounds as they were measured.

- `rounds[r][k]` is the time of `sizes[k]` in round `r`, in microseconds. There are five or more rounds.
- Fewer than a third of the times of each size are outliers: something interrupted them, and they are twice as long or
  more. The others are off by about one per cent.
- Returns `(launch_us, gb_per_s)` as above. Outliers may not move them.
"""


# %% tags=["answer:fit_rounds"]
def fit_rounds(
    sizes: Sequence[int], rounds: Sequence[Sequence[float]]
) -> tuple[float, float]:
    """Launch cost and bandwidth from rounds, some interrupted."""
    # ANSWER
    middle = [
        sorted(column)[len(column) // 2] for column in zip(*rounds, strict=True)
    ]
    return launch_and_bandwidth(sizes, middle)


# %% tags=["check:5"]
check("ex12", 5)

# %% [markdown]
"""
## Your machine

Operations on a CPU, of growing size. Each reads its tensor and writes it, so it moves twice its bytes. Small ones stay
in a cache, whose bandwidth is another one; a line through all of it would be wrong. These stay small:
"""

# %% tags=["try"]
with attempt():
    import torch

    tensors = [torch.ones(1024 * k) for k in (1, 4, 8, 12, 16, 24)]
    rounds = [
        [median_us(x.neg_, time.perf_counter, 5, 1, 50) for x in tensors]
        for _ in range(15)
    ]
    launch_us, gb_per_s = fit_rounds([8 * len(x) for x in tensors], rounds)
    print(f"{launch_us:.2f} µs for an operation, {gb_per_s:.0f} GB/s")

# %% [markdown]
"""
`onelaunch.timeline` measures with the same line and says how sure it is of it: it draws the rounds anew a thousand times
and fits each draw.
"""
