# %% [markdown]
"""
# Exercise 6: The capture loop

When an engine starts, it records its decode step once for each size. Three things have to be right: a warm-up before
each recording, the largest size first, and one pool of memory for all. Here you write that, and the real engine starts
with it.

*About 30 minutes. Medium. You need [chapter 3](../notebooks/03_first_capture.ipynb) and
[chapter 5](../notebooks/05_memory.ipynb); no GPU.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex06_the_capture_loop.ipynb` judges
all of it, and `--hint` helps.

`cuda` is the emulator here, on machines with a GPU too. It has the names of `torch.cuda`: `Stream`, `stream`,
`current_stream`, `CUDAGraph`, `graph`, `graph_pool_handle`. On a GPU your functions are the same with
`from torch import cuda`.
"""

# %%
from collections.abc import Callable, Sequence
from typing import Any

import torch

from onelaunch import emulator as cuda
from onelaunch.grading import attempt, check

# %% [markdown]
"""
## The warm-up

`warm_up(step)` runs `step()` before it is recorded, so that whatever happens only the first time (libraries that
load, workspaces, compilation) does not happen in the capture.

- Calls `step` once, with no arguments, on a side stream: a new `cuda.Stream` or one that you keep for this.
- The side stream waits for the work that the current stream has so far, and afterwards the current stream waits for
  the side stream.
- The current stream is the same as before, when it returns. It returns nothing.
"""


# %% tags=["answer:warm_up"]
def warm_up(step: Callable[[], None]) -> None:
    """Run `step` once on a side stream, in order with the work before it and after it."""
    # ANSWER
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        step()
    cuda.current_stream().wait_stream(side)


# %% tags=["check:1"]
check("ex06", 1)

# %% tags=["check:2"]
check("ex06", 2)

# %% [markdown]
"""
## One recording

`record(step, pool)` records a step that was warmed up.

- Calls `step` once, with no arguments, under capture. Returns a new `cuda.CUDAGraph`.
- `pool` is what another graph's `pool()` or `cuda.graph_pool_handle()` gives: the memory that the recording is to use.
  With `None` it gets a new pool of its own.
"""


# %% tags=["answer:record"]
def record(step: Callable[[], None], pool: Any) -> cuda.CUDAGraph:
    """A new graph of `step`, its memory in `pool`, or in a new pool where None."""
    # ANSWER
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, pool=pool):
        step()
    return graph


# %% [markdown]
"""
Try it. The graph has to compute on what lies in `x` when it is replayed:
"""

# %% tags=["try"]
with attempt():
    x, y = torch.ones(3), torch.zeros(3)

    def ten_times() -> None:
        y.copy_(x * 10)

    warm_up(ten_times)
    graph = record(ten_times, None)
    x.fill_(7)
    graph.replay()
    print("replayed:", y.tolist(), "pool:", graph.pool())

# %% tags=["check:3"]
check("ex06", 3)

# %% [markdown]
"""
## The loop

`capture_graphs(sizes, make_step)` records all sizes.

- `sizes`: the sizes, each once, in any order, at least one. The list stays as it is.
- `make_step(size)` gets the fixed buffers ready for this size and returns its step.
- For each size, the largest first: calls `make_step(size)` once, then your `warm_up` and your `record`.
- All graphs lie in one pool.
- Returns a dict from size to graph.
"""


# %% tags=["answer:capture_graphs"]
def capture_graphs(
    sizes: Sequence[int], make_step: Callable[[int], Callable[[], None]]
) -> dict[int, cuda.CUDAGraph]:
    """The graphs of all `sizes`, recorded largest first into one pool."""
    # ANSWER
    graphs, pool = {}, None
    for size in sorted(sizes, reverse=True):
        step = make_step(size)
        warm_up(step)
        graphs[size] = record(step, pool)
        pool = graphs[size].pool()
    return graphs


# %% [markdown]
"""
Look at what the order does to memory. These steps need two tensors for a moment, of a size that grows with the batch:
"""

# %% tags=["try"]
with attempt():

    def make_step(size: int) -> Callable[[], None]:
        data = torch.ones(size, 1000)
        result = torch.zeros(size, 1000)

        def step() -> None:
            result.copy_((data * 2).exp())

        return step

    graphs = capture_graphs([1, 8, 64], make_step)
    for size, graph in graphs.items():
        print(f"size {size:2}: pool {graph.pool()}")
    print(f"taken: {graphs[64].pool().reserved_bytes:,} bytes")
    alone = capture_graphs([64], make_step)
    print(f"64 alone: {alone[64].pool().reserved_bytes:,} bytes")

# %% tags=["check:4"]
check("ex06", 4)

# %% [markdown]
"""
## In the engine

Now the engine starts with your `capture_graphs`: SmolLM2's decode step, for 4, 2 and 1 requests. Then it answers three
requests from your graph of four. The text must be what Hugging Face's model writes, and all graphs must lie in one
pool. If the text is wrong, the step is run again beside eager, and the hint is what the sanitizer finds. This takes a
few seconds, and the first time it fetches the model.
"""

# %% tags=["check:5"]
check("ex06", 5)

# %% [markdown]
"""
The engine's own loop is `GraphRunner._capture_graphs` in `src/onelaunch/engine/graph.py`, with a progress bar.
"""
