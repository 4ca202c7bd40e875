# %% [markdown]
"""
# Exercise 2: Pad a batch

Graphs exist for a few batch sizes. A batch of any other size runs as the next larger one, filled up with a dummy.
Here you write that: the size, the rows, and what the caller gets back.

*About 20 minutes. Easy. You need [chapter 8](../notebooks/08_padding.ipynb); no GPU, no torch.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex02_pad_a_batch.ipynb` judges all of
it, and `--hint` helps.
"""

# %%
from collections.abc import Callable, Sequence
from typing import Any

from onelaunch.grading import attempt, check

# %% [markdown]
"""
## The size

`captured_size(size, sizes)` says which graph a batch of `size` requests runs in.

- `size`: a whole number, at least 1.
- `sizes`: a list of the recorded sizes, **in any order**, each once. It may be empty. It must stay as it is.
- Returns the smallest recorded size that holds the batch, as an `int`; `None` if there is none.
"""


# %% tags=["answer:captured_size"]
def captured_size(size: int, sizes: Sequence[int]) -> int | None:
    """The smallest of `sizes` that holds `size` requests; None if none does."""
    # ANSWER
    return min((one for one in sizes if one >= size), default=None)


# %% [markdown]
"""
Try it. Three requests, and four, and forty:
"""

# %% tags=["try"]
with attempt():
    for size in (3, 4, 40):
        print(size, "runs as", captured_size(size, [1, 2, 4, 8, 16, 24, 32]))

# %% tags=["check:1"]
check("ex02", 1)

# %% tags=["check:2"]
check("ex02", 2)

# %% tags=["check:3"]
check("ex02", 3)

# %% [markdown]
"""
## The rows

`pad_batch(reqs, sizes, dummy)` gives the rows that the graph computes.

- `reqs`: a list of requests, of any type; at least one.
- Returns a **new** list: the requests in their order, then `dummy` as often as it takes to fill the size.
- If no recorded size holds the batch, it runs eagerly: return a new list of the requests alone.
- `reqs` must stay as it is. The engine has to know later who is really in the batch.
"""


# %% tags=["answer:pad_batch"]
def pad_batch(reqs: list[Any], sizes: Sequence[int], dummy: Any) -> list[Any]:
    """`reqs` and behind them dummies, up to a recorded size; `reqs` alone if none is large enough."""
    # ANSWER
    padded = captured_size(len(reqs), sizes) or len(reqs)
    return reqs + [dummy] * (padded - len(reqs))


# %% tags=["check:4"]
check("ex02", 4)

# %% tags=["check:5"]
check("ex02", 5)

# %% [markdown]
"""
## The step

`run_padded(step, reqs, sizes, dummy)` runs one step on the padded batch.

- `step(rows)` takes a list of rows and returns a list with one result for each. Call it once.
- Returns the results of the requests, in their order, as a list: none of a dummy's.
"""


# %% tags=["answer:run_padded"]
def run_padded(
    step: Callable[[list[Any]], list[Any]],
    reqs: list[Any],
    sizes: Sequence[int],
    dummy: Any,
) -> list[Any]:
    """What `step` gives for each of `reqs`, run on the padded batch."""
    # ANSWER
    return step(pad_batch(reqs, sizes, dummy))[: len(reqs)]


# %% tags=["check:6"]
check("ex02", 6)

# %% [markdown]
"""
That is what `GraphRunner.replay` does around a graph: pad, run, slice. [Chapter 9](../notebooks/09_graph_runner.ipynb)
has the real one.
"""
