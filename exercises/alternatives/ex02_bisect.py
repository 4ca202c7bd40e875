# %% [markdown]
"""
Sorts a copy and searches it by halves, as `onelaunch.padding` does.
"""

# %% tags=["answer:captured_size"]
from bisect import bisect_left


def captured_size(size, sizes):
    ordered = sorted(sizes)
    at = bisect_left(ordered, size)
    return ordered[at] if at < len(ordered) else None


# %% tags=["answer:pad_batch"]
def pad_batch(reqs, sizes, dummy):
    padded = captured_size(len(reqs), sizes)
    if padded is None:
        return list(reqs)
    return [*reqs, *(dummy for _ in range(padded - len(reqs)))]
