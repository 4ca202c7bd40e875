# %% [markdown]
"""
# Exercise 9: six steps that a capture refuses

Each step below computes what it should, and no capture takes it. Write it so that it is recorded once and replayed
with other values. What it computes stays.

*About 50 minutes. Medium. You need [chapter 4](../notebooks/04_what_a_capture_refuses.ipynb); no GPU.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex09_refused_steps.ipynb` judges all
of it, and `--hint` helps.

A check does what an engine does: it runs your step once to warm up, captures it, then fills the same tensors with new
values and replays, several times. No step may change its arguments. All floats are float32.
"""

# %%
import torch
import torch.nn.functional as F

from onelaunch import emulator as cuda
from onelaunch.grading import attempt, check
from onelaunch.tape import CaptureError


def record(step, *tensors):
    """Warm up, then capture step(*tensors). Says why, if that is refused."""
    step(*tensors)
    graph = cuda.CUDAGraph()
    try:
        with cuda.graph(graph):
            out = step(*tensors)
    except CaptureError as error:
        print(
            f"refused: {error.call}\n    why: {error.why}\n    fix: {error.fix}"
        )
        return None
    graph.replay()
    print("captured; a replay equals eager:", torch.equal(out, step(*tensors)))
    return graph


# %% [markdown]
"""
## 1. A table and its rows

`add_positions(x, table, positions)` adds to each token the row of its position.

- `x`: `[batch, width]`. `table`: `[longest, width]`. `positions`: int64, `[batch]`, each from 0 to `longest - 1`, in
  any order, the same one more than once too.
- Returns `[batch, width]`.

This is refused:
"""


# %%
def refused_positions(x, table, positions):
    rows = [table[int(position)] for position in positions]
    return x + torch.stack(rows)


# %% tags=["try"]
x, table = torch.randn(4, 3), torch.randn(16, 3)
positions = torch.tensor([5, 0, 5, 15])
record(refused_positions, x, table, positions)


# %% tags=["answer:add_positions"]
def add_positions(
    x: torch.Tensor, table: torch.Tensor, positions: torch.Tensor
) -> torch.Tensor:
    """`x` plus the row of `table` that `positions` says."""
    # ANSWER
    return x + table[positions]


# %% tags=["try"]
with attempt():
    record(add_positions, x, table, positions)

# %% tags=["check:1"]
check("ex09", 1)

# %% [markdown]
"""
## 2. A decision for each row

`cap(logits, limit)` makes rows smaller that are too large.

- `logits`: `[batch, vocab]`, finite. `limit`: a Python float above 0; it never changes.
- A row whose largest absolute value is above `limit` is multiplied by `limit` divided by that value. Other rows stay
  as they are, rows of zeros too. Returns `[batch, vocab]`.
"""


# %%
def refused_cap(logits, limit):
    out = logits.clone()
    for row in out:
        largest = row.abs().max()
        if largest > limit:
            row.mul_(limit / largest)
    return out


# %% tags=["try"]
logits = torch.tensor([[1.0, -8.0, 2.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
record(lambda logits: refused_cap(logits, 4.0), logits)


# %% tags=["answer:cap"]
def cap(logits: torch.Tensor, limit: float) -> torch.Tensor:
    """Rows whose largest absolute value is above `limit`, scaled to it."""
    # ANSWER
    largest = logits.abs().amax(-1, keepdim=True)
    return torch.where(largest > limit, logits * (limit / largest), logits)


# %% tags=["try"]
with attempt():
    print(cap(logits, 4.0))
    record(lambda logits: cap(logits, 4.0), logits)

# %% tags=["check:2"]
check("ex09", 2)

# %% [markdown]
"""
## 3. A shape that depends on data

`mean_of_alive(values, alive)` is the mean of the rows that are alive.

- `values`: `[rows, width]`. A dead row may hold anything, NaN and infinity too. `alive`: bool, `[rows]`.
- Returns `[width]`; zeros where no row is alive.
"""


# %%
def refused_mean(values, alive):
    rows = values[alive]
    return rows.sum(0) / max(len(rows), 1)


# %% tags=["try"]
values = torch.tensor([[1.0, 2.0], [float("nan"), 9.0], [3.0, 6.0]])
alive = torch.tensor([True, False, True])
record(refused_mean, values, alive)


# %% tags=["answer:mean_of_alive"]
def mean_of_alive(values: torch.Tensor, alive: torch.Tensor) -> torch.Tensor:
    """The mean of the rows that are alive."""
    # ANSWER
    kept = torch.where(alive[:, None], values, 0.0)
    return kept.sum(0) / alive.sum().clamp(min=1)


# %% tags=["try"]
with attempt():
    print("should be [2, 4]:", mean_of_alive(values, alive).tolist())
    record(mean_of_alive, values, alive)

# %% tags=["check:3"]
check("ex09", 3)

# %% [markdown]
"""
## 4. A list of the host

A request forbids some tokens, each request others. This step brings the list to the device:
"""


# %%
def refused_ban(logits, tokens: list[int]):
    return logits.index_fill(1, torch.tensor(tokens), float("-inf"))


# %% tags=["try"]
record(lambda logits: refused_ban(logits, [2, 0]), logits)

# %% [markdown]
"""
The work of the host has to happen before the replay. So the answer is a class with three methods:

- `Ban(vocab)` is made once. `vocab`: the number of tokens.
- `prepare(tokens)` is called before the capture and before each replay, and is not captured. `tokens`: a list of ints
  from 0 to `vocab - 1`, of any length from none to `vocab`; they hold for the next step alone. Returns nothing.
- `step(logits)` is captured. `logits`: `[batch, vocab]`. Returns `[batch, vocab]`: the logits, with minus infinity for
  the tokens that the last `prepare` named, in every row.
"""


# %% tags=["answer:Ban"]
class Ban:
    """Tokens that the next step may not choose."""

    def __init__(self, vocab: int) -> None:
        # ANSWER
        self.banned = torch.zeros(vocab, dtype=torch.bool)

    def prepare(self, tokens: list[int]) -> None:
        # ANSWER
        banned = torch.zeros(len(self.banned), dtype=torch.bool)
        banned[tokens] = True
        self.banned.copy_(banned)

    def step(self, logits: torch.Tensor) -> torch.Tensor:
        # ANSWER
        return logits.masked_fill(self.banned, float("-inf"))


# %% tags=["try"]
with attempt():
    ban = Ban(3)
    ban.prepare([2, 0])
    record(ban.step, logits)
    ban.prepare([1])
    print(ban.step(logits))

# %% tags=["check:4"]
check("ex09", 4)

# %% [markdown]
"""
## 5. A generator of your own

The step is right this time, and the recording is not: the step draws from a generator that the graph does not know.
"""


# %%
def refused_recording(step, generator):
    step()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = step()
    return graph, out


# %% tags=["try"]
generator = torch.Generator().manual_seed(1)


def noise() -> torch.Tensor:
    return torch.rand(3, generator=generator)


try:
    refused_recording(noise, generator)
except CaptureError as error:
    print(f"refused: {error.call}\n    why: {error.why}")

# %% [markdown]
"""
`record_draws(step, generator)` records it.

- `step()` takes nothing, draws from `generator` and returns a tensor. Some steps make something on their first run, so
  run it once before the capture.
- Returns `graph, out`: a `cuda.CUDAGraph` and the tensor that its replays write. Each `graph.replay()` draws what
  `step()` would draw there, also after somebody has seeded `generator` anew.
- Recording must not be seen: the first replay draws what `step()` would have drawn, had nothing been recorded.
"""


# %% tags=["answer:record_draws"]
from collections.abc import Callable


def record_draws(
    step: Callable[[], torch.Tensor], generator: torch.Generator
) -> tuple[cuda.CUDAGraph, torch.Tensor]:
    """A graph of `step` and its output."""
    # ANSWER
    before = generator.get_state()
    step()
    generator.set_state(before)
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with cuda.graph(graph):
        out = step()
    return graph, out


# %% tags=["try"]
with attempt():
    generator.manual_seed(1)
    graph, out = record_draws(noise, generator)
    for _ in range(2):
        graph.replay()
        print("replay:", out.tolist())
    generator.manual_seed(1)
    for _ in range(2):
        print("eager: ", noise().tolist())

# %% tags=["check:5"]
check("ex09", 5)

# %% [markdown]
"""
## 6. Two streams

`gated(x, gate, up, side)` is the first half of a feed-forward block, on two streams.

- `x`: `[batch, width]`. `gate` and `up`: `[width, hidden]`. `side`: a `cuda.Stream`.
- Returns `silu(x @ gate) * (x @ up)`, `[batch, hidden]`. `x @ up` runs on `side`, everything else on the stream that is
  current when the function is called.
- Neither stream may read what the other has not written yet: not in the capture, not before it.
"""


# %%
def refused_gated(x, gate, up, side):
    with cuda.stream(side):
        right = x @ up
    left = F.silu(x @ gate)
    cuda.current_stream().wait_stream(side)
    return left * right


# %% tags=["try"]
x, gate, up = torch.randn(2, 4), torch.randn(4, 4), torch.randn(4, 4)
side = cuda.Stream()
record(lambda x: refused_gated(x, gate, up, side), x)


# %% tags=["answer:gated"]
def gated(
    x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, side: cuda.Stream
) -> torch.Tensor:
    """`silu(x @ gate) * (x @ up)`, the second product on `side`."""
    # ANSWER
    main = cuda.current_stream()
    side.wait_stream(main)
    with cuda.stream(side):
        right = x @ up
    left = F.silu(x @ gate)
    main.wait_stream(side)
    return left * right


# %% tags=["try"]
with attempt():
    graph = record(lambda x: gated(x, gate, up, side), x)
    for kernel in graph.tape.kernels if graph else ():
        print(f"stream {kernel.stream}: {kernel.name}")

# %% tags=["check:6"]
check("ex09", 6)

# %% [markdown]
"""
The six mends are one idea: what the host would have to know at replay stays on the device, or is written into fixed
memory before. [Chapter 7](../notebooks/07_metadata_is_data.ipynb) does it for attention.
"""
