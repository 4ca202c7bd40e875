# %% [markdown]
"""
# Your first capture

**Who this is for.** You have heard that a CUDA Graph records a step and replays it, and want to do it once with your
own hands before you read how an engine does it.

**After this chapter** you can record a step and replay it on new inputs, say what a recording holds and what it does
not, and recognize the four mistakes that nearly everybody makes first. Three of them raise no error.

*About 40 minutes. Easy. You need PyTorch: tensors, modules, `copy_`. It helps to know why a launch costs
([chapter 1](01_what_a_launch_costs.ipynb)); no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. You recorded `y = step(x)` and want the result for other numbers. What do you do with `x`?
2. What does `y` hold after the capture, before the first replay?
3. A step contains `if self.training:`. When is that decided?
4. You append `y` to a list after each of three replays. What is in the list?

**Answers.** 1: you copy the new numbers into it with `x.copy_(new)`; a new tensor called `x` is never read. 2: garbage;
nothing was computed. 3: once, when the step was recorded. 4: three times the same tensor, with the numbers of the last
replay.

</details>
"""

# %%
import torch
import torch.nn.functional as F
from torch import nn

from onelaunch import cuda, viz

device = "cpu" if cuda.is_emulated else "cuda"
NO_TAPE = "A real graph does not show its tape. See the page for this one."

# %% [markdown]
"""
## A step to record

Each layer of a Llama has a feed-forward part. Here it is, with the residual sum around it, and with one number that
Python holds (`scale`; Llama has none, some models do):
"""


# %%
class MLP(nn.Module):
    """The feed-forward part of a Llama layer: [batch, width] -> the same."""

    def __init__(self, width: int, scale: float) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 4 * width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = F.silu(self.gate(x)) * self.up(x)
        return x + self.scale * self.down(hidden)


torch.manual_seed(0)
mlp = MLP(width=64, scale=0.5).to(device).requires_grad_(False)
x = torch.randn(8, 64, device=device)  # eight requests, 64 numbers each

# %% [markdown]
"""
## Warm up, record, replay

Three moves. The first is a [**warm-up**](../book/glossary.md#warm-up): run the step once as usual, so that what
happens only the first time does not end up in the recording. PyTorch's documentation does it on a
[stream](../book/glossary.md#stream) of its own, and so do we:
"""

# %%
side = cuda.Stream()
side.wait_stream(cuda.current_stream())
with cuda.stream(side):
    mlp(x)
cuda.current_stream().wait_stream(side)

# %% [markdown]
"""
The second is the [**capture**](../book/glossary.md#capture). `cuda` is `torch.cuda` where there is a GPU, and its
emulation where there is none; the lines are the same. Guess what is in `y` at the end:
"""

# %% tags=["nbval-check-output"]
g = cuda.CUDAGraph()
with cuda.graph(g):
    y = mlp(x)
print("y:", y.shape, y[0, :4].tolist())

# %% [markdown]
"""
The shape is right and the numbers are not. During a capture the kernels are written down, **not run**. `y` has its
place in memory, and nobody has written to it yet. (The emulator fills it with NaN, so that you notice. On a GPU you
find whatever was there before.)

The third is the [**replay**](../book/glossary.md#replay):
"""

# %% tags=["nbval-check-output"]
g.replay()
print("same as eager, bit for bit:", torch.equal(y, mlp(x)))

# %% [markdown]
"""
## New numbers, the same places

A recording knows no variables, only addresses. It reads where `x` was and writes where `y` was. So you bring new
numbers *to `x`*, and find the result *in `y`*:
"""

# %% tags=["nbval-check-output"]
where = x.data_ptr(), y.data_ptr()
for _ in range(3):
    x.copy_(torch.randn(8, 64, device=device))
    g.replay()
    same = torch.equal(y, mlp(x))
    print(
        "same as eager:",
        same,
        "  moved:",
        (x.data_ptr(), y.data_ptr()) != where,
    )

# %% [markdown]
"""
A decode step is used this way: what came out of one step goes into the next. Four steps from the graph, and four
without it:
"""

# %% tags=["nbval-check-output"]
start = torch.randn(8, 64, device=device)

eager = start
for _ in range(4):
    eager = mlp(eager)

x.copy_(start)
for _ in range(4):
    g.replay()
    x.copy_(y)
print("same after four steps:", torch.equal(y, eager))

# %% [markdown]
"""
### Your Python does not run

This is what makes a graph fast. To see it, make `forward` impossible:
"""


# %% tags=["nbval-check-output"]
def broken(self, x):
    raise RuntimeError("forward was called")


forward, MLP.forward = MLP.forward, broken
x.copy_(start)
g.replay()
MLP.forward = forward
print("replayed; same as eager:", torch.equal(y, mlp(x)))

# %% [markdown]
"""
## What the tape holds

The model is not in the graph. What is? This book calls it the [**tape**](../book/glossary.md#tape), and the emulator
lets you read it:
"""

# %%
names = {"x": x, "y": y, **dict(mlp.named_parameters())}
viz.tape_table(g.tape, names) if cuda.is_emulated else NO_TAPE

# %% [markdown]
"""
Read a line from left to right: which operation, which memory it reads, which numbers are frozen in it, which memory
it writes, and the line of Python that asked for it. That is all that a kernel knows. Go through it once:

- **Kernels.** The step has two lines of Python, and these are the operations that they became. `self.gate(x)` also
  takes the transpose of its weight. That is a [view](../book/glossary.md#view): no kernel, only another way to read
  the same memory.
- **Memory from outside.** `x` and the weights were there before. The tape does not own them, it knows where they are.
- **Memory of its own.** What the step makes lies in the graph's own memory, its *pool*, and has an address there
  (`@`, in bytes). The result of `gate` is not needed once `silu` has read it, so the result of `up` takes its place.
  [Chapter 5](05_memory.ipynb) is about this.
- **Frozen values.** `scale` was a Python attribute. On the tape it is a number.
- **No names, no `if`, no loop.** They were Python, and Python is over.

The same as a graph. A line leads from a kernel to the one that reads its result:
"""

# %%
viz.tape_graph(g.tape, names) if cuda.is_emulated else NO_TAPE

# %% [markdown]
"""
`gate` and `up` need nothing from each other: a device could compute them side by side. The dashed line forbids it
here. `up` writes to the memory that `silu` reads, so it has to wait until `silu` is done. The mathematics does not
ask for that, the reuse of memory does.

On a GPU the question does not even arise in this example. What was captured from one stream keeps the order of that
stream, one kernel after the other. Kernels that shall run side by side have to be captured from several streams;
[chapter 4](04_what_a_capture_refuses.ipynb) does that.

In numbers:
"""

# %% tags=["nbval-check-output"]
print(g.tape.summary() if cuda.is_emulated else NO_TAPE)

# %% [markdown]
"""
## Common mistakes

Now do it wrong on purpose. Guess what happens before you run a cell.

### A new tensor instead of a copy

A new batch arrives, and we call it `x`:
"""

# %% tags=["nbval-check-output"]
before = y.clone()
recorded_x = x
x = torch.randn(8, 64, device=device)  # the mistake
g.replay()
print("the new batch's result:", torch.equal(y, mlp(x)))
print("the old batch's result:", torch.equal(y, before))

x = recorded_x  # mended: the tensor that was recorded, and a copy into it
x.copy_(torch.randn(8, 64, device=device))
g.replay()
print("after copy_:", torch.equal(y, mlp(x)))

# %% [markdown]
"""
The name moved on, the address did not. The replay read the old batch and computed its result once more: right shape,
right type, wrong answer. It is called a **stale input**. It happens to weights as well, when new ones are loaded into
new tensors instead of being copied into the old ones (vllm-project/vllm#48941; [references](../book/references.md)).

### A number or a branch of Python

The step's `scale` is a Python number. Change it after the capture:
"""

# %% tags=["nbval-check-output"]
mlp.scale = 2.0
g.replay()
print("result with scale 2.0:", torch.equal(y, mlp(x)))
mlp.scale = 0.5
print("result with scale 0.5:", torch.equal(y, mlp(x)))

# %% [markdown]
"""
It is frozen. With an `if` it is worse, since not a number is frozen but a way through the code:
"""

# %% tags=["nbval-check-output"]
clip = False


def step() -> torch.Tensor:
    out = mlp(x)
    return out.clamp(-1, 1) if clip else out


step()
branchy = cuda.CUDAGraph()
with cuda.graph(branchy):
    unclipped = step()

clip = True
branchy.replay()
print("clipped:", bool(unclipped.abs().max() <= 1), " should be:", clip)

# %% [markdown]
"""
The `clamp` is not on the tape, and no value of `clip` brings it there. What shall vary from replay to replay must be a
**tensor in a fixed place**, and a choice must be made by a kernel (`torch.where`). For `scale`, that is:
"""

# %% tags=["nbval-check-output"]
mlp.scale = torch.tensor(0.5, device=device)  # a tensor with no dimension
mlp(x)
varying = cuda.CUDAGraph()
with cuda.graph(varying):
    scaled = mlp(x)
for value in (0.5, 2.0):
    mlp.scale.fill_(value)
    varying.replay()
    print("scale", value, "is used:", torch.equal(scaled, mlp(x)))
mlp.scale = 0.5

# %% [markdown]
"""
The public case is huggingface/transformers#45323: a frozen maximum length, and a mathematics benchmark fell from 0.45
to 0.23. Nothing was raised.

### Keeping an output

Collect the results of three replays:
"""

# %% tags=["nbval-check-output"]
kept, cloned, expected = [], [], []
for _ in range(3):
    x.copy_(torch.randn(8, 64, device=device))
    g.replay()
    kept.append(y)  # the mistake
    cloned.append(y.clone())
    expected.append(mlp(x))

for name, results in (("kept", kept), ("cloned", cloned)):
    right = [torch.equal(a, b) for a, b in zip(results, expected, strict=True)]
    print(f"{name}: {right}")

# %% [markdown]
"""
`kept` holds one tensor three times, and each replay overwrote it. **Use an output before the next replay, or clone
it.** Sampling a token from the logits is a use; appending them to a list is not.

### No warm-up

Many modules make something when they are first called: a table, a workspace, a compiled kernel. This one makes a
table of factors, one for each row:
"""


# %%
class Weighted(nn.Module):
    """Multiplies row i by 1 / (i + 1)."""

    table: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.table is None:
            rows = torch.arange(len(x), device=x.device)
            self.table = (rows + 1.0).reciprocal()
        return x * self.table[:, None]


def record(module: nn.Module, warm_up: bool) -> cuda.CUDAGraph:
    """The graph of module(x)."""
    if warm_up:
        module(x)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        module(x)
    return graph


# %% tags=["nbval-check-output"]
for warm_up in (True, False):
    module = Weighted()
    graph = record(module, warm_up)
    if cuda.is_emulated:
        kernels = [kernel.name for kernel in graph.tape.kernels]
        print("warm-up" if warm_up else "no warm-up", kernels)
    print("  eager afterwards:", module(x)[:3, 0].isnan().tolist(), "(NaN?)")

# %% [markdown]
"""
Without a warm-up, the making of the table was recorded. There are two prices. Every replay makes the table again. And
the table lies in the graph's memory, where no kernel has run yet: whoever uses the module now, without the graph,
computes with garbage. On a GPU the first run of a library may also do things that a capture refuses, and then you get
an error instead (sgl-project/sglang#33356), or a workspace that stays in the graph's memory
(pytorch/pytorch#193832).

How often to warm up? mini-sglang and nano-vllm do it once for each size, SGLang and TensorRT-LLM twice,
`torch.cuda.make_graphed_callables` three times.

## How to explain it, in three sentences

A capture runs your Python once, and writes down each kernel with its addresses and its numbers instead of running it.
A replay runs that list and no Python, so it reads what the recorded addresses hold *now* and writes to the recorded
addresses. Therefore you copy inputs in, take results out before the next replay, and nothing that Python decided can
change any more.

## Questions you may be asked

<details>
<summary>Why must the input of a replay be copied, when the new tensor is already on the device?</summary>

The recording holds the address of the old tensor. PyTorch has no way to tell the recorded kernels about another one.
(A graph's node can be given new arguments, but that is work for each kernel that reads the tensor. A copy of the few
inputs of a decode step is cheaper and simpler.)

</details>

<details>
<summary>What runs on the host during a replay?</summary>

One call that launches the graph. No line of the model, no operation's dispatch, no allocation.

</details>

<details>
<summary>Can a graph be captured on the default stream?</summary>

No. `torch.cuda.graph` makes a side stream current for the capture, which is why you rarely notice. A replay may go to
any stream.

</details>

<details>
<summary>The warm-up computes the same step. Why does it not spoil the state, such as a KV cache?</summary>

It does write to it. An engine warms up with a dummy batch that writes to a page nobody reads. If your step counts
something, set it back after the warm-up.

</details>

<details>
<summary>Is a replay numerically the same as eager?</summary>

The same kernels run on the same numbers. Here the results are compared bit for bit. On a GPU a library may pick another
algorithm for a capture, for example where its workspace differs, so compare there too.

</details>

## Summary

- Warm up, `with cuda.graph(g): y = step(x)`, then `x.copy_(...)`, `g.replay()`, read `y`.
- A capture computes nothing. A replay runs no Python.
- On the tape: kernels, addresses, frozen numbers. Not on it: names, branches, loops.
- Stale input, frozen value, kept output: each wrong without an error.

## Exercises

Exercise 6, The capture loop, starts the real engine with your warm-up and your recordings, and judges them:
`exercises/ex06_the_capture_loop.ipynb`. It needs [chapter 5](05_memory.ipynb) too. And to find out by hand:

1. Record a step that returns a dict of two tensors. Are both in the graph's memory? (`viz.tape_table` shows it.)
2. Write to `x` inside the step (`x.mul_(2)`) and capture it. What is in `x` after the capture? After two replays?
3. Make `Weighted` safe without a warm-up: where would you make the table?
4. Mend the branch on `clip` so that one graph can do both, without recording again.

## Further reading

- PyTorch's documentation, "CUDA semantics", the section on CUDA Graphs: the rules, and the warm-up as done here.
- `torch/cuda/graphs.py` in PyTorch: what `with torch.cuda.graph(g)` does is one short class.
- The [references](../book/references.md) for the reports quoted here.
"""
