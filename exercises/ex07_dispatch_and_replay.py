# %% [markdown]
"""
# Exercise 7: Dispatch and replay

A batch comes. Does a graph run it? What has to happen before the replay? And who owns what comes out? Three short
functions, and the real engine runs on them.

*About 30 minutes. Medium. You need [chapter 9](../notebooks/09_graph_runner.ipynb); no GPU.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex07_dispatch_and_replay.ipynb`
judges all of it, and `--hint` helps.
"""

# %%
import random
from collections.abc import Callable

from torch import Tensor

from onelaunch.engine.core import Batch
from onelaunch.engine.graph import GraphRunner
from onelaunch.grading import attempt, check, small

# %% [markdown]
"""
## What you work with

`runner` is the engine's `GraphRunner`. You need of it

- `graph_bs_list`, the recorded sizes in ascending order, and `max_graph_bs`, the largest, 0 where there is none;
- `graph_map`: a dict from size to graph. `graph_map[4].replay()` runs the step of 4 rows on what lies in the fixed
  buffers;
- `buffer.copy_from(batch)`, which copies ids, positions and slots into the fixed buffers (exercise 4 is
  about that);
- `context.attn_backend.prepare_for_replay(batch)`, which copies the page table and the lengths;
- `buffer.logits`, a fixed buffer `[largest, vocab]` float32, which every replay writes, each its first rows;
- `note_eager(batch)`, which counts steps without a graph and warns once.

`batch` has `size` (its requests), `padded_size` (its rows, dummies included), `is_decode` and `is_prefill`. The engine
pads it before it runs.

`small.Runner` is a runner whose graphs you can follow by eye: a row of its logits is the token's id, plus 1000 times
the request's length, plus the column. An earlier batch has left its values everywhere.

## Which steps run from a graph

`can_use_graph(runner, batch)` returns `True` for a decode step that fits into a recorded size, with padding if need
be, and `False` for all others, as a `bool`. It is asked before the batch is padded, and after.
"""


# %% tags=["answer:can_use_graph"]
def can_use_graph(runner: GraphRunner, batch: Batch) -> bool:
    """Whether `batch` is a decode step that a recorded size holds."""
    # ANSWER
    return batch.is_decode and batch.size <= runner.max_graph_bs


# %% tags=["check:1"]
check("ex07", 1)

# %% [markdown]
"""
## The replay

`replay(runner, batch)` runs a padded decode step that a graph holds.

- Copies all inputs of this batch to where the graph reads them, replays the graph of `batch.padded_size` rows, once.
- Returns the logits of the requests, `[batch.size, vocab]` float32, in memory of their own: **they keep their values,
  whatever is replayed later**. They take no more memory than that.

The engine's own `replay` returns a view, and says that it is good until the next step. Yours is for a caller who
keeps results, to return the log-probabilities of a whole answer for example.
"""


# %% tags=["answer:replay"]
def replay(runner: GraphRunner, batch: Batch) -> Tensor:
    """The logits of `batch`, computed by its graph; nobody writes to them later."""
    # ANSWER
    runner.buffer.copy_from(batch)
    runner.context.attn_backend.prepare_for_replay(batch)
    runner.graph_map[batch.padded_size].replay()
    return runner.buffer.logits[: batch.size].clone()


# %% [markdown]
"""
Look at it: two steps, the first one's logits read at once and again after the second.
"""

# %% tags=["try"]
with attempt():
    runner = small.Runner(random.Random(7), [1, 2, 4])
    first = small.decode_batch(random.Random(1), size=3, padded_size=4)
    logits = replay(runner, first)
    print("first step: ", runner.log)
    print("right:      ", runner.logits(first)[:, 0].tolist())
    print("at once:    ", logits[:, 0].tolist())
    replay(runner, small.decode_batch(random.Random(2), size=4, padded_size=4))
    print("a step later", logits[:, 0].tolist())

# %% tags=["check:2"]
check("ex07", 2)

# %% tags=["check:3"]
check("ex07", 3)

# %% tags=["check:4"]
check("ex07", 4)

# %% [markdown]
"""
## The step

`run_step(runner, batch, eager)` runs any batch, prefill or decode.

- Where a graph holds it, returns what your `replay` returns.
- Else it tells `runner.note_eager(batch)`, once, and returns what `eager(batch)` returns: the logits `[batch.size,
  vocab]`, computed without a graph. Call it once. (`note_eager` knows that a prefill is no fault.)
"""


# %% tags=["answer:run_step"]
def run_step(
    runner: GraphRunner, batch: Batch, eager: Callable[[Batch], Tensor]
) -> Tensor:
    """The logits of `batch`, from a graph where there is one that holds it."""
    # ANSWER
    if can_use_graph(runner, batch):
        return replay(runner, batch)
    runner.note_eager(batch)
    return eager(batch)


# %% tags=["check:5"]
check("ex07", 5)

# %% [markdown]
"""
## In the engine

Now the engine runs every step through your `run_step`. SmolLM2 answers three requests in a graph of four rows: the
text must be what Hugging Face's model writes, every decode step must be a replay, and the logits of all steps are
looked at again at the end. If the text is wrong, the step is run beside eager, and the hint is what the sanitizer
finds. This takes a few seconds, and the first time it fetches the model.
"""

# %% tags=["check:6"]
check("ex07", 6)

# %% [markdown]
"""
`Engine.forward` and `GraphRunner.replay` in `src/onelaunch/engine` are these functions, with statistics.
"""
