# %% [markdown]
"""
Lets NumPy fit, and throws away what is far from the shortest time.
"""

# %% tags=["answer:median_us"]
import numpy as np


def median_us(call, clock, warmup, rounds, calls):
    marks = []
    for number in range(-warmup, 0):
        call()
    for number in range(rounds):
        marks.append(clock())
        for _ in range(calls):
            call()
        marks.append(clock())
    lengths = np.array(marks[1::2]) - np.array(marks[::2])
    return float(np.median(lengths) / calls * 1e6)


# %% tags=["answer:fit_line"]


def fit_line(x, times, weights=None):
    if len(np.unique(x)) < 2:
        raise ValueError("two different x, please")
    root = np.sqrt(np.ones(len(x)) if weights is None else np.array(weights))
    scale = float(np.max(np.abs(x)))
    a = np.stack([root, root * np.array(x) / scale], axis=1)
    start, each = np.linalg.lstsq(a, root * np.array(times), rcond=None)[0]
    return float(start), float(each) / scale


# %% tags=["answer:fit_rounds"]
def fit_rounds(sizes, rounds):
    kept = []
    for size, column in zip(sizes, zip(*rounds)):
        kept += [(size, t) for t in column if t < 1.5 * min(column)]
    return launch_and_bandwidth([s for s, _ in kept], [t for _, t in kept])
