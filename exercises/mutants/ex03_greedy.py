# %% [markdown]
"""
Fails: 5

Adds the size that saves most, again and again. On a few batches that is nearly always the best.
"""

# %% tags=["answer:best_list"]
from itertools import combinations


def best_list(counts, budget):
    def rows(sizes):
        return sum(
            min(s for s in sizes if s >= b) * n for b, n in counts.items()
        )

    top = max(counts)
    if len(counts) <= 6:  # few enough to try them all
        lists = (
            [*each, top]
            for many in range(min(budget, len(counts)))
            for each in combinations(sorted(set(counts) - {top}), many)
        )
        return min(lists, key=rows)
    sizes = [top]
    for _ in range(budget - 1):
        sizes = min(([*sizes, b] for b in counts), key=rows)
    return sorted(set(sizes))
