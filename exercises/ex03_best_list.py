# %% [markdown]
"""
# Exercise 3: The list that wastes least

Every recorded size costs time and memory at the start; every size that is missing costs padding at each step. Here you
count what a list wastes on the traffic of a service, and find the best list that you can afford.

*About 45 minutes. Medium. You need [chapter 8](../notebooks/08_padding.ipynb); no GPU, no torch.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex03_best_list.ipynb` judges all of
it, and `--hint` helps.
"""

# %%
from collections.abc import Mapping, Sequence

from onelaunch.grading import attempt, check

TRAFFIC = {1: 400, 2: 250, 3: 120, 5: 90, 9: 60, 12: 30, 20: 15, 37: 5}

# %% [markdown]
"""
`TRAFFIC` is a histogram: 400 decode steps had 1 request, 250 had 2, and so on. In all that follows

- `counts` is such a dict, batch size -> number of steps, all of them whole numbers of at least 1; it may be empty.
- `sizes` is the list of recorded sizes, ascending; it may be empty. A batch is replayed at the smallest size that holds
  it; above the largest it runs eagerly.

Neither may be changed.

## What a list wastes

`waste(counts, sizes)` is the number of dummy rows for each live row, over all steps that are **replayed**.

- Dummy rows of all replayed steps, divided by the requests in all replayed steps, as a `float`.
- Eager steps don't count at all. If nothing is replayed, nothing is wasted: `0.0`.
"""


# %% tags=["answer:waste"]
def waste(counts: Mapping[int, int], sizes: Sequence[int]) -> float:
    """Dummy rows for each live row of the replayed steps."""
    # ANSWER
    live = padded = 0
    for batch, steps in counts.items():
        size = min((size for size in sizes if size >= batch), default=None)
        if size is not None:
            live += batch * steps
            padded += (size - batch) * steps
    return padded / live if live else 0.0


# %% tags=["try"]
with attempt():
    for sizes in ([37], [1, 2, 4, 8, 16, 32, 64], [1, 2, 3, 5, 9, 12, 20, 37]):
        print(f"{waste(TRAFFIC, sizes):6.1%} {sizes}")

# %% tags=["check:1"]
check("ex03", 1)

# %% tags=["check:2"]
check("ex03", 2)

# %% [markdown]
"""
`eager_share(counts, sizes)` is the share of **steps** that run without a graph, as a `float`; `0.0` if there are no
steps.
"""


# %% tags=["answer:eager_share"]
def eager_share(counts: Mapping[int, int], sizes: Sequence[int]) -> float:
    """The share of steps that no size holds."""
    # ANSWER
    top = max(sizes, default=0)
    eager = sum(steps for batch, steps in counts.items() if batch > top)
    return eager / sum(counts.values()) if counts else 0.0


# %% tags=["check:3"]
check("ex03", 3)

# %% [markdown]
"""
## The best list

`best_list(counts, budget)` is a list of **at most** `budget` sizes that holds every batch and computes the fewest rows.

- `counts` has at least one batch; `budget` is a whole number of at least 1.
- Returns the sizes as an ascending list of `int`. If several lists are equally good, any of them will do.
- It must be the best, not a good one. The last check has 200 different batches and a budget of 16: trying all lists
  would take longer than the universe has.

Think about it from the largest size down. It must be the largest batch (why?). Which size comes below it? Whatever you
choose, the batches between the two run at the larger one, and what remains is the same question again, with fewer
batches and a budget of one less.
"""


# %% tags=["answer:best_list"]
def best_list(counts: Mapping[int, int], budget: int) -> list[int]:
    """At most `budget` sizes, ascending, that compute the fewest rows for all these steps."""
    # ANSWER
    batches = sorted(counts)
    # best[j]: fewest rows for the j smallest batches, and the list that does it
    best: list[tuple[int, list[int]]] = [(0, [])]
    for j in range(1, len(batches) + 1):
        top = batches[j - 1]
        best.append((top * sum(counts[b] for b in batches[:j]), [top]))
    for _ in range(budget - 1):
        better = [best[0]]
        for j in range(1, len(batches) + 1):
            top, steps, found = batches[j - 1], 0, best[j]
            for i in range(j - 1, -1, -1):
                steps += counts[batches[i]]
                rows = best[i][0] + top * steps
                if rows < found[0]:
                    found = (rows, [*best[i][1], top])
            better.append(found)
        best = better
    return best[-1][1]


# %% tags=["try"]
with attempt():
    for budget in range(1, 9):
        sizes = best_list(TRAFFIC, budget)
        print(f"{budget} graphs: {waste(TRAFFIC, sizes):6.1%} {sizes}")

# %% tags=["check:4"]
check("ex03", 4)

# %% tags=["check:5"]
check("ex03", 5)

# %% [markdown]
"""
## How many graphs?

`graphs_needed(counts, limit)` is the smallest number of graphs with which the waste is at most `limit`.

- `counts` has at least one batch; `limit` is a `float`, at least 0.
- Every batch has to be held: no eager steps.
- Returns an `int`.
"""


# %% tags=["answer:graphs_needed"]
def graphs_needed(counts: Mapping[int, int], limit: float) -> int:
    """The smallest budget whose best list wastes at most `limit`."""
    # ANSWER
    budget = 1
    while waste(counts, best_list(counts, budget)) > limit:
        budget += 1
    return budget


# %% tags=["check:6"]
check("ex03", 6)

# %% [markdown]
"""
`onelaunch.padding.best_sizes` does the same, faster: the best next size never moves down when the top moves up, so it
can be searched for by halves.
"""
