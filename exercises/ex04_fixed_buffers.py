# %% [markdown]
"""
# Exercise 4: GraphCaptureBuffer

A graph reads addresses. So an engine keeps one set of buffers that never move, records its decode step on them, and
copies each batch in before the replay. Here you write both halves, and the real engine runs on them.

*About 30 minutes. Medium. You need [chapter 6](../notebooks/06_fixed_buffers.ipynb); no GPU.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex04_fixed_buffers.ipynb` judges all
of it, and `--hint` helps.
"""

# %%
import random

from IPython.display import display

from onelaunch import viz
from onelaunch.engine.core import Batch
from onelaunch.engine.graph import GraphCaptureBuffer
from onelaunch.grading import attempt, check, small

# %% [markdown]
"""
## What you work with

`buffer` is the engine's `GraphCaptureBuffer`. It has three inputs, each an int64 tensor of shape `[largest]`, the
largest recorded size: `input_ids`, `positions` and `out_loc`. All graphs read them, each its first rows.

`batch` is a decode step. It has

- `size`: how many requests there are, and `padded_size`: how many rows, dummies included;
- the same three inputs, int64, of shape `[padded_size]`: requests first, then dummies.

`small` makes both, in a size that one can read. An earlier batch has left its values in this buffer:
"""

# %% tags=["try"]
buffer = small.used_buffer(random.Random(4))
batch = small.decode_batch(random.Random(4), size=3, padded_size=4)
for name in small.INPUTS:
    print(f"{name:10} batch {getattr(batch, name).tolist()}")
    print(f"{'':10} buffer {getattr(buffer, name).tolist()}")

# %% [markdown]
"""
## At capture

`set_batch(buffer, batch)` is called once for each size, before its graph is recorded. The model only sees the batch,
so the batch's tensors must **be** the buffer's memory when the model runs.

- Sets `batch.input_ids`, `batch.positions` and `batch.out_loc` to the first `batch.padded_size` rows of the buffer:
  the same memory, no copy. The batch may not have these attributes before, and their old values do not matter.
- The buffer stays as it is. Returns nothing.
"""


# %% tags=["answer:set_batch"]
def set_batch(buffer: GraphCaptureBuffer, batch: Batch) -> None:
    """Make `batch` read its inputs from `buffer`, to be recorded."""
    # ANSWER
    rows = slice(batch.padded_size)
    batch.input_ids = buffer.input_ids[rows]
    batch.positions = buffer.positions[rows]
    batch.out_loc = buffer.out_loc[rows]


# %% tags=["check:1"]
check("ex04", 1)

# %% [markdown]
"""
## Before each replay

`copy_from(buffer, batch)` is called with the batch of this step. Afterwards the graph of `batch.padded_size` rows is
replayed, and it reads what the buffer's memory holds.

- Brings the batch's three inputs into the first `batch.padded_size` rows of the buffer, padded rows included.
- The buffer's tensors stay the tensors they are, where they are. What is behind those rows does not matter.
- The batch stays as it is: the same tensors, the same values. Returns nothing.
- It may be called many times, with batches of all sizes in any order.
"""


# %% tags=["answer:copy_from"]
def copy_from(buffer: GraphCaptureBuffer, batch: Batch) -> None:
    """Bring the inputs of `batch` into `buffer`, for the next replay."""
    # ANSWER
    rows = slice(batch.padded_size)
    buffer.input_ids[rows].copy_(batch.input_ids)
    buffer.positions[rows].copy_(batch.positions)
    buffer.out_loc[rows].copy_(batch.out_loc)


# %% [markdown]
"""
Look at it. On the left stands what the step needs, on the right what the graph will find. An arrow is a copy that
arrived:
"""

# %% tags=["try"]
with attempt():
    buffer = small.used_buffer(random.Random(4))
    batch = small.decode_batch(random.Random(4), size=3, padded_size=4)
    memory = {name: getattr(buffer, name) for name in small.INPUTS}
    copy_from(buffer, batch)
    step = {name: getattr(batch, name).tolist() for name in small.INPUTS}
    found = {name: tensor.tolist() for name, tensor in memory.items()}
    display(viz.fixed_buffers(step, found, live=3))

# %% tags=["check:2"]
check("ex04", 2)

# %% tags=["check:3"]
check("ex04", 3)

# %% tags=["check:4"]
check("ex04", 4)

# %% [markdown]
"""
## In the engine

Now your two functions take the place of the engine's own. SmolLM2 records a graph of 4 rows on your `set_batch`, then
answers three requests at once with your `copy_from` before each replay. The text must be what Hugging Face's model
writes. If it is not, the step is run again beside eager, and the hint is what the sanitizer finds. This takes a few
seconds, and the first time it fetches the model.
"""

# %% tags=["check:5"]
check("ex04", 5)

# %% [markdown]
"""
Both together are `GraphCaptureBuffer` in `src/onelaunch/engine/graph.py`. Attention has two more inputs, the page
table and the lengths: [chapter 7](../notebooks/07_metadata_is_data.ipynb) and exercise 5 are about those.
"""
