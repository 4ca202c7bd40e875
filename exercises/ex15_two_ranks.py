# %% [markdown]
"""
# Exercise 15: Two ranks, one order

With two GPUs, two processes (**ranks**) run the same step, and in it they meet: a **collective**, such as an
all-gather, ends only when every rank is in it. A graph that holds a collective must be recorded and replayed by all
ranks, in one order. If one rank does something else, both wait for ever.

*About 30 minutes. Medium. You need [chapter 9](../notebooks/09_graph_runner.ipynb); no GPU.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex15_two_ranks.ipynb` judges all of
it, and `--hint` helps.
"""

# %%
from onelaunch.grading import attempt, check
from onelaunch.grading.ranks import Graph, Rank, World

# %% [markdown]
"""
## What you work with

A toy: ranks are threads, and where they can never meet, that is said in place of a hang. Your functions run on every
rank at once. `rank` has

- `number`, and `sizes`: the batch sizes for which **this** rank has the memory. Other ranks may have others.
- `all_gather(value)`: the values of all ranks, a list by rank. A collective.
- `record(size)`: a graph of that size. `graph.replay()` runs it. Both are collectives, for one size.
- `eager()`: a step without a graph. A collective, too.
- `close()`: destroys the communicator, through which ranks meet. A collective. No graph may hold it any more:
  `graph.destroy()` lets go, and is no collective.

## Record

`record_all(rank)` records every size that **all** ranks have the memory for, the largest first, and returns a dict
from size to graph. There may be none. `rank.sizes` may be in any order, and stays as it is.
"""


# %% tags=["answer:record_all"]
def record_all(rank: Rank) -> dict[int, Graph]:
    """The graphs that all ranks can have, recorded in one order."""
    # ANSWER
    everyone = rank.all_gather(rank.sizes)
    common = set(everyone[0]).intersection(*everyone[1:])
    return {size: rank.record(size) for size in sorted(common, reverse=True)}


# %% tags=["check:1"]
check("ex15", 1)

# %% [markdown]
"""
## Step

`step(rank, graphs, requests)` runs one decode step. Each rank has requests of its own, so `requests` differs; it may
be 0, and the rank takes part with dummies alone. All pad to one size: the smallest in `graphs` that holds the **most**
requests any rank has. Replays it and returns the size. If none holds them, all take `rank.eager()`, and `None` is
returned. If no rank has a request, the smallest size runs all the same.
"""


# %% tags=["answer:step"]
def step(rank: Rank, graphs: dict[int, Graph], requests: int) -> int | None:
    """One step of all ranks together: the size that was replayed, or None."""
    # ANSWER
    most = max(rank.all_gather(requests))
    size = min((size for size in graphs if size >= most), default=None)
    if size is None:
        rank.eager()
    else:
        graphs[size].replay()
    return size


# %% [markdown]
"""
Rank 0 has 3 requests and rank 1 has none. Both should replay 4:
"""

# %% tags=["try"]
with attempt():
    world = World([[4, 2, 1], [1, 2, 4, 8]])
    print(
        world.run(
            lambda rank: step(rank, record_all(rank), (3, 0)[rank.number])
        )
    )
    for rank in world.ranks:
        print(rank.number, rank.log)

# %% tags=["check:2"]
check("ex15", 2)

# %% [markdown]
"""
## Shut down

`shut_down(rank, graphs)` destroys all graphs, then closes the communicator, on every rank. Returns nothing.
"""


# %% tags=["answer:shut_down"]
def shut_down(rank: Rank, graphs: dict[int, Graph]) -> None:
    """Graphs first, the communicator last."""
    # ANSWER
    for graph in graphs.values():
        graph.destroy()
    rank.close()


# %% tags=["check:3"]
check("ex15", 3)
