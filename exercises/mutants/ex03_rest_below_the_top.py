# %% [markdown]
"""
Fails: 5

Halves the range of batches again and again, instead of looking for the best cut. With few batches it looks at all.
"""

# %% tags=["answer:best_list"]
from itertools import combinations


def best_list(counts, budget):
    def rows(sizes):
        return sum(
            min(s for s in sizes if s >= b) * n for b, n in counts.items()
        )

    batches = sorted(counts)
    if len(batches) <= 6:
        lists = (
            [*each, batches[-1]]
            for many in range(min(budget, len(batches)))
            for each in combinations(batches[:-1], many)
        )
        return min(lists, key=rows)
    places = {
        -(-len(batches) * part // budget) for part in range(1, budget + 1)
    }
    return [batches[place - 1] for place in sorted(places)]
