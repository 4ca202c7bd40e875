# %% [markdown]
"""
# What a capture refuses

**Who this is for.** You have recorded a step ([chapter 3](03_first_capture.ipynb)), and now a real one is refused with
an error that names no line and no tensor. Or worse, it is not refused, and the result is wrong.

**After this chapter** you can say what a capture takes and what it cannot, read CUDA's errors, and mend each kind of
code that is refused. You also know the two kinds that nothing refuses.

*About 50 minutes. Medium. You need chapter 3; no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. Why is `x.cpu()` refused, and `x.clone()` not?
2. `x[mask]` with a boolean mask is refused, `torch.where(mask, x, 0)` is not. What is the difference?
3. A step allocates a tensor with `torch.empty`. Is that refused? What is on the tape?
4. A step appends to a Python list. How long is the list after one capture and ten replays?
5. You launched work on a second stream during the capture. What do you have to do before it ends?

**Answers.** 1: `.cpu()` makes the host wait for a result that does not exist yet; `clone` is a copy on the device. 2:
the first one's shape depends on the data. 3: no; nothing is on the tape, since memory is found once, at capture. 4: one
item longer. 5: let the first stream wait for it.

</details>
"""

# %%
import linecache
import random

import torch
import torch.nn.functional as F

from onelaunch import cuda, viz

torch.manual_seed(0)
device = "cpu" if cuda.is_emulated else "cuda"
NO_TAPE = "A real graph does not show its tape. See the page for this one."

# %% [markdown]
"""
## What a capture takes

Four things: **kernels**, **copies on the device**, **fills of memory**, and **the order** in which they must happen.
This step has all of them:
"""

# %%
x = torch.randn(8, 64, device=device)
weight = torch.randn(64, 64, device=device)
table = torch.ones(16, 64, device=device)


def plain() -> torch.Tensor:
    """A fill, a copy on the device, a kernel."""
    table.zero_()
    table[:8].copy_(x)
    return table @ weight


g = cuda.CUDAGraph()
with cuda.graph(g):
    out = plain()

# %%
names = {"x": x, "weight": weight, "table": table, "out": out}
viz.tape_graph(g.tape, names) if cuda.is_emulated else NO_TAPE

# %% [markdown]
"""
Everything else that happens while Python runs through the step is *not* on the tape: the function calls, the `if`s, the
search for memory, printing, waiting. Most of it does no harm. Some of it **needs a result**, and there the capture has
to say no: nothing is computed while it lasts, so there is no result.

| Python does this in a step | and the capture |
|---|---|
| launches a kernel, copies or fills on the device | writes it down |
| calls functions, loops, decides by shapes and flags | leaves it out; the decisions stay as they were |
| finds memory for a result | writes down the address, once |
| reads a value, decides by it, copies it to the host | refuses |
| brings a list of numbers to the device | refuses |
| waits | refuses |

The next cell captures a step and, if that is refused, says what the emulator knows. A GPU gives the text after `CUDA:`
and nothing else.
"""


# %%
def say(name: str, text: str) -> None:
    print(f"{name:8}{text}")


def explain(error: RuntimeError) -> None:
    if not cuda.is_emulated:
        return say("refused", str(error).split("\n")[0])
    on = f" on '{error.name}'" if error.name else ""
    say("refused", error.call + on)
    say("line:", linecache.getline(*error.where[:2]).strip())
    say("rule:", error.rule)
    say("why:", error.why)
    say("fix:", error.fix)
    say("CUDA:", error.cuda_error or "none, only the emulator refuses this")


def attempt(step) -> cuda.CUDAGraph | None:
    """Capture step() and compare a replay with eager."""
    graph = cuda.CUDAGraph()
    # A capture that fails on a GPU can leave its own stream as the current one.
    with cuda.stream(cuda.current_stream()):
        try:
            with cuda.graph(graph):
                out = step()
        except RuntimeError as error:
            return explain(error)
    graph.replay()
    print("captured; a replay equals eager:", torch.equal(out, step()))
    return graph


# %% [markdown]
"""
## Reading a number

The classic. You want the last token of each request, and the lengths are on the device:
"""

# %% tags=["nbval-check-output"]
tokens = torch.randn(4, 16, 8, device=device)  # [request, token, width]
lengths = torch.tensor([3, 16, 7, 1], device=device)


def last_tokens() -> torch.Tensor:
    rows = []
    for row in range(4):
        end = lengths[row]
        rows.append(tokens[row, end.item() - 1])
    return torch.stack(rows)


attempt(last_tokens)

# %% [markdown]
"""
`.item()` asks the device for a number and waits for it (Lightning-AI/lightning-thunder#727 is a public case).
`int(t)`, `float(t)`, `t.tolist()`, `print(t)`, and `t` as an index do the same and look harmless. The attention of
[chapter 2](02_a_small_llm_engine.ipynb) reads its lengths this way, which is why the engine cannot record it.

The mend is to **keep the number on the device**, here as an index:
"""


# %% tags=["nbval-check-output"]
def last_tokens_mended() -> torch.Tensor:
    return tokens[torch.arange(4, device=device), lengths - 1]


graph = attempt(last_tokens_mended)

# %% [markdown]
"""
## A decision of the host

An `if` on a tensor is a read as well, by `bool()`:
"""


# %% tags=["nbval-check-output"]
def tamed() -> torch.Tensor:
    logits = x @ weight
    if logits.max() > 20:
        logits = logits * 0.5
    return logits


attempt(tamed)


# %% tags=["nbval-check-output"]
def tamed_mended() -> torch.Tensor:
    logits = x @ weight
    return torch.where(logits.max() > 20, logits * 0.5, logits)


graph = attempt(tamed_mended)

# %% [markdown]
"""
Both ways are computed now and a kernel chooses. That is more work, and it is work for the device, which had time.

## A shape that depends on data

How many rows does `tokens[alive]` have? The host must know, to find memory for them:
"""


# %% tags=["nbval-check-output"]
def sum_of_alive() -> torch.Tensor:
    alive = lengths > 2
    return tokens[alive].sum(1)


attempt(sum_of_alive)


# %% tags=["nbval-check-output"]
def sum_of_alive_mended() -> torch.Tensor:
    alive = (lengths > 2)[:, None, None]
    return torch.where(alive, tokens, 0).sum(1)  # dead rows are zero


graph = attempt(sum_of_alive_mended)

# %% [markdown]
"""
`nonzero`, `masked_select`, `unique` and `repeat_interleave` by a tensor are of the same kind. The remedy is always a
fixed size and a mask; this is what padding is to a batch ([chapter 9](09_graph_runner.ipynb)).

## Data from the host

A sampler forbids some tokens. Which ones, a Python list says:
"""


# %% tags=["nbval-check-output"]
def forbid() -> torch.Tensor:
    banned = torch.tensor([2, 5], device=device)
    return (x @ weight).index_fill(1, banned, -1e9)


attempt(forbid)

# %% [markdown]
"""
The two numbers lie in ordinary memory of the host, and the copy to the device makes the host wait. Even if it did not,
the replay would copy from a place that Python has long given to something else
(PaddlePaddle/Paddle#78568 is about such a case). So make the tensor before, and fill it before each replay:
"""

# %% tags=["nbval-check-output"]
banned = torch.tensor([2, 5], device=device)  # later: banned.copy_(new)


def forbid_mended() -> torch.Tensor:
    return (x @ weight).index_fill(1, banned, -1e9)


graph = attempt(forbid_mended)
# %% [markdown]
"""
## Data to the host
"""


# %% tags=["nbval-check-output"]
def next_tokens() -> torch.Tensor:
    return (x @ weight).argmax(-1).cpu()


attempt(next_tokens)


# %% tags=["nbval-check-output"]
def next_tokens_mended() -> torch.Tensor:
    return (x @ weight).argmax(-1)  # .cpu() after the replay


graph = attempt(next_tokens_mended)

# %% [markdown]
"""
## Waiting

Somebody left a timer in the step:
"""

# %% tags=["nbval-check-output"]
end = cuda.Event(enable_timing=True)


def timed() -> torch.Tensor:
    out = x @ weight
    end.record()
    end.synchronize()
    return out


attempt(timed)

# %% [markdown]
"""
There is nothing to wait for while nothing runs. Time a replay from outside:
"""

# %%
graph = attempt(lambda: x @ weight)
start = cuda.Event(enable_timing=True)
start.record()
graph.replay()
end.record()
end.synchronize()
print(f"{start.elapsed_time(end):.3f} ms")

# %% [markdown]
"""
## A library that looks at its own result
"""


# %% tags=["nbval-check-output"]
def inverse() -> torch.Tensor:
    return torch.linalg.inv(weight)


attempt(inverse)

# %% [markdown]
"""
You wrote no `.item()`, the library did: `inv` raises an error for a singular matrix, and to know that it must look.
Many such functions have a variant that does not look, and returns the flag instead:
"""


# %% tags=["nbval-check-output"]
def inverse_mended() -> torch.Tensor:
    return torch.linalg.inv_ex(weight).inverse


graph = attempt(inverse_mended)

# %% [markdown]
"""
## Random numbers

A generator has a state on the host, an offset that grows with each use. A replay does not run the host's code, so the
offset would stay where it is, and each replay would draw the same numbers:
"""

# %% tags=["nbval-check-output"]
generator = torch.Generator(device).manual_seed(1)


def noise() -> torch.Tensor:
    return torch.rand(3, device=device, generator=generator)


attempt(noise)

# %% [markdown]
"""
PyTorch's default generator is known to every graph. Others have to be registered; then each replay moves them on, as
eager does:
"""

# %% tags=["nbval-check-output"]
g = cuda.CUDAGraph()
g.register_generator_state(generator)
with cuda.graph(g):
    drawn = noise()

twin = torch.Generator(device).manual_seed(1)
for _ in range(3):
    g.replay()
    eager = torch.rand(3, device=device, generator=twin)
    print("same numbers as eager:", torch.equal(drawn, eager))

# %% [markdown]
"""
Seeding is work of the host as well. In a step it would happen once, so it is refused. (The emulator notices it when the
next number is drawn, and names that line.) Seed before the replay:
"""


# %% tags=["nbval-check-output"]
def seeded() -> torch.Tensor:
    torch.manual_seed(7)
    return torch.rand(3, device=device)


attempt(seeded)

# %% tags=["nbval-check-output"]
g = cuda.CUDAGraph()
with cuda.graph(g):
    drawn = torch.rand(3, device=device)
torch.manual_seed(7)
g.replay()
print("same numbers as eager:", torch.equal(drawn, seeded()))

# %% [markdown]
"""
## More than one stream

[Chapter 3](03_first_capture.ipynb) said that a capture from one stream keeps its order. With two streams, `gate` and
`up` may run side by side. The side stream is drawn into the capture by waiting for the first one (**fork**), and has to
be waited for in the end (**join**):
"""

# %% tags=["nbval-check-output"]
side = cuda.Stream()
gate, up, down = (torch.randn(64, 64, device=device) for _ in range(3))


def two_streams(join: bool = True) -> torch.Tensor:
    main = cuda.current_stream()
    side.wait_stream(main)  # fork
    with cuda.stream(side):
        right = x @ up
    left = F.silu(x @ gate)
    if join:
        main.wait_stream(side)
    return (left * right) @ down


graph = attempt(two_streams)

# %%
names = {"x": x, "gate": gate, "up": up, "down": down}
viz.tape_graph(graph.tape, names) if cuda.is_emulated else NO_TAPE

# %% [markdown]
"""
Compare it with the figure of chapter 3. The dashed line is gone: streams do not share memory that is used again, so
nothing forces `up` to wait.

Forget the join, and the graph would end before its work does:
"""


# %% tags=["nbval-check-output"]
def forgotten_join() -> torch.Tensor:
    return two_streams(join=False)


attempt(forgotten_join)

# %% [markdown]
"""
deepseek-ai/DeepEP#62 is a public case. The opposite mistake is to wait for work that is not part of the capture:
"""

# %% tags=["nbval-check-output"]
with cuda.stream(side):
    prepared = x * 2  # before the capture, on another stream


def waits_for_outside() -> torch.Tensor:
    cuda.current_stream().wait_stream(side)
    return prepared @ weight


attempt(waits_for_outside)

# %% [markdown]
"""
Wait before the capture, then there is nothing left to wait for:
"""


# %% tags=["nbval-check-output"]
def waits_for_nothing() -> torch.Tensor:
    return prepared @ weight


cuda.current_stream().wait_stream(side)
graph = attempt(waits_for_nothing)

# %% [markdown]
"""
## What nobody refuses: host code

Refusals are the good case. Host code that needs no result of the device is simply **left out**, silently. It ran once:
"""

# %% tags=["nbval-check-output"]
log = []


def chatty() -> torch.Tensor:
    log.append("step")
    return x + random.random()


g = cuda.CUDAGraph()
with cuda.graph(g):
    out = chatty()
seen = []
for _ in range(3):
    g.replay()
    seen.append(out.clone())
print("the log has", len(log), "entry after three replays")
print(
    "all replays used the same number:",
    all(torch.equal(seen[0], s) for s in seen),
)

# %% [markdown]
"""
Counters, logs, statistics, Python's random numbers, the time of day: whatever they gave at capture is what they give
forever.

## What nobody refuses: allocation

Finding memory is host code too. `torch.empty` in a step is fine. Memory is found once, from the graph's own pool, and
the address is what ends up on the tape. But then this cannot work. The cache grows by one token in each step, as a
cache made with `torch.cat` does:
"""

# %% tags=["nbval-check-output"]
cache = torch.zeros(0, 4, device=device)
new = torch.ones(1, 4, device=device)


def grow() -> torch.Tensor:
    global cache
    cache = torch.cat([cache, new])
    return (cache.sum(1) > 0).sum()


g = cuda.CUDAGraph()
with cuda.graph(g):
    total = grow()
found = []
for _ in range(3):
    g.replay()
    found.append(total.item())
print("tokens in the cache after each replay:", found)

# %% [markdown]
"""
It stays at one token. Each replay appends the same token to the same empty cache, in the same place. Python's
assignment (`cache = ...`) happened once. Instead, a cache must have its full size from the start, and a *position* that
is itself on the device:
"""

# %% tags=["nbval-check-output"]
cache = torch.zeros(16, 4, device=device)
position = torch.zeros(1, dtype=torch.int64, device=device)


def append() -> torch.Tensor:
    cache.index_copy_(0, position, new)
    position.add_(1)
    return (cache.sum(1) > 0).sum()


g = cuda.CUDAGraph()
with cuda.graph(g):
    total = append()
print("position after the capture:", position.item())
found = []
for _ in range(3):
    g.replay()
    found.append(total.item())
print("tokens in the cache after each replay:", found)

# %% [markdown]
"""
This is what the engine's KV cache is, with `out_loc` in the place of `position`. And see the first line of the output:
the capture itself wrote nothing.

## After a refusal

A refused capture leaves nothing behind. What the step had written before it was refused is as it was, and the next
capture works:
"""

# %% tags=["nbval-check-output"]
before = x.clone()


def writes_then_reads() -> float:
    x.add_(1)
    return x.sum().item()


attempt(writes_then_reads)
print("x is as before:", torch.equal(x, before))
graph = attempt(lambda: x * 2)

# %% [markdown]
"""
On a GPU two more things are worth knowing. The error that you see last is often a second one, "operation failed due to
a previous error during capture": it comes from *ending* the capture. Scroll up to the first. And in PyTorch 2.13 the
end of a failed capture raises before the former stream is made current again (`torch/cuda/graphs.py`, `__exit__`).
While you mend your step, restart the process after a refusal.

## All the rules

This table is made from the emulator's own, `src/onelaunch/tape/rules.py`:
"""

# %%
from html import escape

from IPython.display import HTML

from onelaunch.tape import RULES

rows = ["<tr><th>rule, and what CUDA says</th><th>why; what to do</th></tr>"]
for rule in RULES.values():
    error = escape(rule.cuda_error or "(only the emulator refuses)")
    why, fix = escape(rule.why), escape(rule.fix)
    rows.append(
        f"<tr><td><b>{rule.name}</b><br>{error}</td>"
        f"<td>{why[0].upper()}{why[1:]}.<br><i>{fix}</i></td></tr>"
    )
frame = 'style="table-layout:fixed;width:100%"'  # wraps on a phone
cell = (
    'style="text-align:left;vertical-align:top;overflow-wrap:anywhere;'
    'padding:.3em .6em .3em 0"'
)
text = f"<table {frame}>{''.join(rows)}</table>"
HTML(text.replace("<td>", f"<td {cell}>").replace("<th>", f"<th {cell}>"))

# %% [markdown]
"""
## What the emulator cannot refuse

The emulator hears two things: each operation that passes PyTorch's [dispatcher](../book/glossary.md#dispatcher), and
each call of a PyTorch function from Python. What passes neither it cannot hear. Here are two ways around it, both
through numpy, which on a CPU can look at the same memory:
"""

# %% tags=["nbval-check-output"]
if cuda.is_emulated:
    import numpy as np

    shared, other = torch.zeros(4), torch.ones(4)
    array = shared.numpy()

    def around() -> torch.Tensor:
        array[:] += 1  # a write that PyTorch never sees
        doubled = torch.from_dlpack(np.from_dlpack(other) * 2)
        return shared + doubled

    g = cuda.CUDAGraph()
    with cuda.graph(g):
        out = around()
    print("kernels:", [kernel.name for kernel in g.tape.kernels])
    print("shared after the capture:", shared.tolist())
    other.fill_(5)
    g.replay()
    print("after a replay:", out.tolist(), " eager:", around().tolist())

# %% [markdown]
"""
One kernel of three is on the tape. The write through `array` really happened during the capture, and the doubling is a
frozen constant. With tensors on a GPU you cannot write these lines, because numpy does not reach its memory.

And there are things that a CPU does not have: a second thread that breaks a capture by what it calls
(vllm-project/vllm#48053; `capture_error_mode` is about that), copies from pinned memory, which a GPU does capture,
kernels of an extension that do not pass the dispatcher. Where the emulator refuses something that a GPU might take, its
rule is called `not-emulated`.

## Common mistakes

**Swallowing the error.** A refusal ends the capture, whatever your code does with the exception:
"""


# %% tags=["nbval-check-output"]
def swallows() -> torch.Tensor:
    try:
        scale = x.max().item()
    except RuntimeError:
        scale = 1.0
    return x * scale


attempt(swallows)

# %% [markdown]
"""
- **Printing a tensor to find the fault.** Printing reads it. Print `x.shape`, or return the tensor and look at it after a
  replay.
- **Mending a refusal with a constant.** Replacing `lengths.max().item()` by the number that it had makes the capture
  pass, and freezes it: the error has become a silent one.
- **Hoping for `capture_error_mode="relaxed"`.** It permits calls that may be unsafe, such as allocating. It does not
  give the host a result that does not exist.
- **Believing that what is captured is right.** Host code and Python's assignments were left out without a word.

## How to explain it, in three sentences

A capture writes down work for the device and computes nothing, so all that needs a result is refused: reading a value,
deciding by it, a shape that depends on it, waiting. Work on another stream must be forked from the capturing stream and
joined to it again. Host code that needs no result is not refused but left out, and that is the part to be afraid of.

## Questions you may be asked

<details>
<summary>`if x.shape[0] > 4:` in a step is not refused. Is it safe?</summary>

Shapes are known to the host, so nothing is read. But the branch is frozen like every other. It is safe because the
shape is frozen as well: a graph has one shape.

</details>

<details>
<summary>The error text says that the CPU tensor could be pinned. What would be captured then?</summary>

A copy from one address in host memory, repeated at each replay. So the pinned tensor must live as long as the graph, and
you write new numbers into it before a replay, and only once the replay before has read it.

</details>

<details>
<summary>Why is a branch made with `torch.where` no waste of time at small batch?</summary>

Both sides are computed. At small batch the device has spare time, and the alternative costs a round trip to the host,
which waits for all work before it.

</details>

<details>
<summary>Does a graph draw new random numbers at each replay?</summary>

Yes, where its generator is known to it: before a launch PyTorch hands the graph the generator's current offset, and
moves it on. An unregistered generator is an error.

</details>

<details>
<summary>A model uses a KV cache made by concatenation. Can its decode step be captured?</summary>

It is captured without an error and is useless: every replay appends to the cache of the capture. The cache must have a
fixed place and a fixed size.

</details>

## Summary

- Captured: kernels, copies on the device, fills, and their order. Not captured: everything that the host does.
- Refused: what needs a result during the capture, and streams that are not joined.
- Not refused, only left out: host code, allocation, assignments.
- Mend by keeping values on the device, sizes fixed, and data of the host in tensors that exist before.

## Exercises

1. `torch.tensor(2.0)` in a step: refused or not? And with `device=device`, and `torch.full((), 2.0, device=device)`?
   Look at the tape.
2. Write the top-k filter of a sampler so that it is captured. Where does its first version break?
3. Leave the fork out of `two_streams` and keep the join. What is on the tape, and when does `x @ up` run?
4. Make `grow` fail loudly instead of silently, with one line in the step.
5. Six steps that are refused, for you to mend, and judged: `exercises/ex09_refused_steps.ipynb`.

## Further reading

- The CUDA programming guide, "CUDA Graphs", section on stream capture: prohibited operations, forks and joins,
  invalidation.
- PyTorch's documentation, "CUDA semantics", the constraints of CUDA Graphs.
- The [references](../book/references.md) for the reports quoted here.
"""
