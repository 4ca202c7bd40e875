# %% [markdown]
"""
Asks the smaller question by recursion, and remembers the answers.
"""

# %% tags=["answer:waste"]
from bisect import bisect_left


def waste(counts, sizes):
    held = {b: n for b, n in counts.items() if sizes and b <= sizes[-1]}
    live = sum(b * n for b, n in held.items())
    rows = sum(sizes[bisect_left(sizes, b)] * n for b, n in held.items())
    return rows / live - 1 if live else 0.0


# %% tags=["answer:eager_share"]
def eager_share(counts, sizes):
    if not counts:
        return 0.0
    held = sum(n for b, n in counts.items() if any(size >= b for size in sizes))
    return 1 - held / sum(counts.values())


# %% tags=["answer:best_list"]
from functools import cache


def best_list(counts, budget):
    batches = sorted(counts)

    @cache
    def solve(j, left):
        """Rows and sizes for the j smallest batches with `left` graphs."""
        if j == 0:
            return 0, ()
        if left == 0:
            return float("inf"), ()
        top, steps, best = batches[j - 1], 0, (float("inf"), ())
        for i in range(j - 1, -1, -1):
            steps += counts[batches[i]]
            rows, sizes = solve(i, left - 1)
            best = min(
                best,
                (rows + top * steps, (*sizes, top)),
                key=lambda each: each[0],
            )
        return best

    return list(solve(len(batches), budget)[1])


# %% tags=["answer:graphs_needed"]
def graphs_needed(counts, limit):
    return next(
        n
        for n in range(1, len(counts) + 1)
        if waste(counts, best_list(counts, n)) <= limit
    )
