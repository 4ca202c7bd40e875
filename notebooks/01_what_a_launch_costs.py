# %% [markdown]
"""
# What a launch costs

**Who this is for.** You have heard that small-batch decoding is "launch-bound" and want to see where that comes from.

**After this chapter** you can count the operations of a decode step, say how many of them are kernels, measure what
asking for one costs, and work out from two numbers whether a GPU waits for its host.

*About 35 minutes. Easy. You need chapter 0; no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. Is `x.view(8, -1)` a kernel? Is `x + 1`?
2. Does a decode step at batch 8 launch more kernels than one at batch 1?
3. You time additions of 1, 1,000 and 8,000 numbers on a CPU. How do you find out what *asking* for an addition costs?
4. A step has 350 kernels. The host needs 5 µs to launch one, the GPU 2 µs to run one. How long is the step, and who
   waits?

**Answers.** 1: no, a view only describes memory in another way; yes. 2: no, the same ones, on larger tensors (the
reference backend of this book is an exception: it treats one request after the other). 3: put a line through the times
and read it off at size zero. 4: about 1.75 ms, 350 x 5 µs; the GPU waits three fifths of the time.

</details>
"""

# %%
from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from onelaunch import LLM, SamplingParams, viz
from onelaunch.timeline import costs

llm = LLM("smollm2-135m")

# %% [markdown]
"""
## Count what one step asks for

Whatever PyTorch computes passes through one place on the way from your Python to a kernel: the dispatcher. A
`TorchDispatchMode` stands in that place and sees every operation. Ours only counts.

Not every operation is a [**kernel**](../book/glossary.md#kernel), that is, work on the device. Some are
[**views**](../book/glossary.md#view): they describe the same memory in another way, and launch nothing. PyTorch's own
description of an operation, its *schema*, tells the two apart: the result of a view shares memory with an argument,
and nothing is written.
"""

# %%
# The allocator's and autograd's work, not the device's
BOOKKEEPING = ("aten::empty", "aten::detach")


def is_view(operator: torch._ops.OpOverload) -> bool:
    """True where the result is another description of an argument's memory."""
    aliases = [result.alias_info for result in operator._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


class CountOperations(TorchDispatchMode):
    """Counts every operation that is dispatched while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: Counter[str] = Counter()
        self.views: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if is_view(func):
            self.views[func.name()] += 1
        elif not func.name().startswith(BOOKKEEPING):
            self.kernels[func.name()] += 1
        return func(*args, **(kwargs or {}))


def count_decode_step(llm: LLM, batch_size: int) -> CountOperations:
    """Count one decode step of ``batch_size`` requests, from preparing the batch to choosing the tokens."""
    params = SamplingParams(max_tokens=3, ignore_eos=True)
    for _ in range(batch_size):
        llm.submit("One launch", params)
    llm.step()  # the prefill
    with CountOperations() as counted:
        llm.step()
    llm.step()  # the last token: the requests are done
    return counted


one = count_decode_step(llm, batch_size=1)
print(f"{one.kernels.total()} kernels, {one.views.total()} views")

# %% [markdown]
"""
Hundreds of kernels, for one token. Most of them are small. The four matrix products of each layer (queries, keys and
values in one; output; gate and up in one; down) and the last one, which yields the logits, are the only large ones:
"""

# %% tags=["nbval-check-output"]
layers = llm.config.num_hidden_layers
print(f"matrix products: {one.kernels['aten::mm']} = {layers} layers x 4 + 1")
print("attention calls:", one.kernels["aten::scaled_dot_product_attention"])
print("more than 400 kernels in all:", one.kernels.total() > 400)

# %%
PARTS = {
    "aten::mm": "matrix products",
    "aten::index_select": "gather pages and rows",
    "aten::index_copy_": "write the KV cache",
    "aten::rms_norm": "norms",
    "aten::scaled_dot_product_attention": "attention",
    "aten::silu": "activation",
    "aten::cat": "rotary embedding",
    "aten::addcmul": "rotary embedding",
    "aten::mul.Tensor": "multiply (rotary, gate)",
    "aten::add.Tensor": "residual sums",
}
by_part: Counter[str] = Counter()
for name, count in one.kernels.items():
    by_part[PARTS.get(name, "other")] += count
viz.kernel_counts(dict(by_part))

# %% [markdown]
"""
Published counts are of the same size: about 100 kernels for Llama-3.2-1B in engines that fuse small ones together,
401 for Qwen3-4B in another engine, 293 for Qwen3-8B in a third ([sources](../book/references.md)). How many there are
depends more on how much an engine fuses than on the size of the model.

## What the host pays for one operation

On a GPU, the host *launches* a kernel and goes on; the device runs it later. What does the host pay for one operation?
You can see it without a GPU. Here is the time of an addition, for more and more numbers:
"""

# %%
measured = costs.measure(budget_s=6)
viz.cost_line(measured.operation, "a + b", measured.machine)

# %% [markdown]
"""
The times lie near a line. Its slope is the computing: so much for each number more. Where it *begins*, there would be
nothing to compute, and it is far from zero. That is what **asking** costs: Python, PyTorch's
[dispatcher](../book/glossary.md#dispatcher), memory for the result, and the bookkeeping around a kernel.

For the rows of a small model the shaded part is nearly everything. One row of SmolLM2 has 576 numbers:
"""

# %%
row = measured.operation.at(576)
asking = measured.operation.start.us / row
print(f"576 numbers take {row:.2f} µs; {asking:.0%} of that is asking")

# %% [markdown]
"""
Timing a microsecond takes care. `costs.measure` repeats every measurement in rounds, in a new order each time, so that
a machine that gets slower does not favour anybody. It takes medians, so that one interruption does not count. And it
says how sure it is: the rounds are drawn again at random a thousand times (a *bootstrap*), and the mark at zero spans
the middle 95% of what comes out. Other programs on your machine widen it.

## Where that time goes

The same addition can be asked for in other ways, with less around it each time. The differences say where the time
goes:
"""

# %%
viz.host_time(measured)

# %% [markdown]
"""
Read it from below. The **addition** is what a kernel is for. The **dispatch** is PyTorch finding that kernel for these
types and devices and setting it up; it is what a call costs that no Python asked for, from a loop in C++ (or, where
that is not compiled, from TorchScript). **Python** has to call into PyTorch, and to have memory found for the result.
The **module** around it is `nn.Module`'s own Python: looking for hooks, then calling `forward`.

All the numbers, in one table:
"""

# %%
measured

# %% [markdown]
"""
Three lines are worth a second look.

- A *view* launches nothing, and still takes most of the time that an addition takes. The device never sees it; the host
  pays it.
- `inference_mode` is cheaper than `no_grad`, and both are cheaper than keeping notes for a backward.
- A replayed kernel in C++ has neither Python nor a search for memory in it. This is the gain of a graph that even a CPU
  can show ([chapter 10](10_a_graph_on_a_cpu.ipynb)).

## A whole step

An addition is the simplest there is. What does a decode step pay? Take a model so small that computing takes next to no
time, and let it write the same text twice: as usual, and with its step recorded, so that the same kernels are issued
without the model's Python, its modules and its views. The two take turns, for the reason above. Of 200 steps each, look
at the shortest, which nothing interrupted.
"""

# %%
import time

small = {
    "device": "cpu",
    "attention_backend": "gather",
    "max_running_req": 1,
    "max_seq_len_override": 256,
}
params = SamplingParams(max_tokens=201, ignore_eos=True)
seconds: dict[str, list[float]] = {"as usual": [], "recorded": []}
with (
    LLM("random:llama", **small) as usual,
    LLM("random:llama", graph="tape", cuda_graph_bs=[1], **small) as recorded,
):
    streams = [llm.stream("One launch", params) for llm in (usual, recorded)]
    for _ in range(201):
        for name, pieces in zip(seconds, streams, strict=True):
            start = time.perf_counter()
            next(pieces)
            seconds[name].append(time.perf_counter() - start)

# %%
viz.bars(
    {"": {name: 1e6 * min(each) for name, each in seconds.items()}},
    "the shortest decode step of a tiny model",
    "µs",
    caption=f"The shortest decode step of a tiny model. Measured on {measured.machine}.",
)

# %% [markdown]
"""
The difference was spent on asking. What remains is the kernels, their dispatch, and the engine around them: choosing
requests, preparing the batch, picking the token.

The host asks for the same things in the same order at every step. **That repetition is what a graph takes away.** On a
CPU it is worth this much; on a GPU the launch itself is saved as well.

## What a launch adds on a GPU

On a CPU the call *is* the work. On a GPU the host only hands it over, through the driver, and that is the launch. If
you run this on a machine with a GPU, the table above has it. Otherwise:
"""

# %%
if measured.gpu is None:
    print("not measured:", measured.not_measured["gpu"])
else:
    launched = measured.gpu.calls["torch.add(a, b, out=c)"]
    print("launch an addition and go on:", launched)
    print("launch it and wait:", measured.gpu.wait)

# %%
viz.cost_line(
    measured.gpu.graph_launch, "Launching a graph", measured.machine
) if measured.gpu else "a graph's launch against its nodes: not measured"

# %% [markdown]
"""
Figures that others have measured. None of them was measured for this book; each has its source in the
[references](../book/references.md):

| what | time | on |
|---|---|---|
| launch a kernel of 2.9 µs, then wait for it | 9.6 µs | V100 |
| the same, launched one after the other | 3.8 µs each | V100 |
| the same, all of them in one graph | 3.4 µs each | V100 |
| one launch, eager | 3.8 µs | B200 |
| one kernel of a graph | 0.8 µs | B200 |
| an eager addition of 512 x 512 numbers, and go on | 8 µs | A100 |
| the same, and wait | 17 µs | A100 |
| a launch through Triton, no arguments | 5.73 µs | Triton 3.5 |
| the same with 19 arguments | 13.18 µs | Triton 3.5 |
| launch a graph, on CUDA 11.8 | 2 µs + 0.2 µs a node | RTX 3060 |
| launch a graph, on CUDA 12.6 | 2.5 µs + 0.001 µs a node | RTX 3060 |

Waiting after each launch is the dearest thing in this table. What is left of a launch in a graph is small, and on
new drivers nearly the same for ten kernels as for a thousand.

## Who waits for whom

Put the two sides next to each other. The host launches kernels one after the other; the device runs them in the same
order, each as soon as it has been launched and the one before it is done. With `launch_us` for the host and
`kernel_us` for the device, a step of `n` kernels takes about `n * max(launch_us, kernel_us)`: **the slower side sets
the pace.**

The inference notes that this book quotes put a step at 350 launches of about 5 µs: 1.75 ms of the host. If the kernels
are shorter than that, the device cannot make the step any shorter:
"""


# %% tags=["nbval-check-output"]
def step_ms(kernels: int, launch_us: float, kernel_us: float) -> float:
    """Milliseconds of a step in which all kernels are alike."""
    pace_us = max(launch_us, kernel_us)
    return ((kernels - 1) * pace_us + launch_us + kernel_us) / 1e3


for kernel_us in (2, 20):
    step = step_ms(350, launch_us=5, kernel_us=kernel_us)
    busy = 350 * kernel_us / 1e3
    print(f"{step:.2f} ms, of which the device computes {busy:.2f} ms")

# %%
viz.host_and_device_lanes(launch_us=5, kernel_us=2)

# %%
viz.host_and_device_lanes(launch_us=5, kernel_us=20)

# %% [markdown]
"""
In the first picture the device waits most of the time: the step is
[**launch-bound**](../book/glossary.md#launch-bound). In the second the host is far ahead, and the device never waits:
the step is bound by the device. A graph helps the first and does nothing for the second. This is why graphs are for
decoding at small batch, and why they gain nothing for a long prefill.

## Launch-bound or not?

You rarely know the two numbers. What you can see from outside is what a graph changes. These are published decode steps,
eager and from a graph ([sources](../book/references.md)). What a graph saves, the device had spent waiting:
"""

# %% tags=["nbval-check-output"]
published = {  # milliseconds of a step at batch 1, and of a token when busy
    "GPT-2, vLLM, H200": (1e3 / 207.7, 1e3 / 766.6),
    "Llama-3-8B, SGLang, H100": (9.28, 7.06),
    "Qwen3-4B, pegainfer, 5070 Ti": (14.63, 12.29),
    "Qwen2-7B, SGLang, 4090, busy": (1e3 / 5006, 1e3 / 5029),
}
for name, (eager, graph) in published.items():
    saved = 1 - graph / eager
    print(f"{name:30} {eager:5.2f} -> {graph:5.2f} ms: {saved:4.0%} saved")

# %% [markdown]
"""
The smaller the model and the faster the GPU, the more of a step was waiting. A GPT-2 on an H200 is launch-bound. Qwen2
on a busy RTX 4090 is not: with many requests each kernel is long, and the host is ahead all the time.

A service tells you the same without any graph: if a step with eight requests takes hardly longer than one with a single
request, its device has time to spare.

## Does a larger batch mean more kernels?

It should not: the same operations on tensors with more rows. That is what makes one recording per batch size worth
while.
"""

# %% tags=["nbval-check-output"]
eight = count_decode_step(llm, batch_size=8)
ATTENTION = "aten::scaled_dot_product_attention"
GATHER, KEEP = "aten::index_select", "aten::copy_"  # before it and after it


def all_but_attention(counted: CountOperations) -> int:
    per_request = (ATTENTION, GATHER, KEEP)
    return counted.kernels.total() - sum(
        counted.kernels[k] for k in per_request
    )


print("attention calls at batch 1:", one.kernels[ATTENTION])
print("attention calls at batch 8:", eight.kernels[ATTENTION])
print("all else the same:", all_but_attention(one) == all_but_attention(eight))

# %% [markdown]
"""
One part does not hold to it: the reference attention goes through the requests one by one (chapter 2 shows why that
is plain to read and no good for recording). Its count depends on the batch; a recordable backend's must not.

## Common mistakes

- **Timing a kernel without waiting for it.** A launch returns at once. Without `torch.cuda.synchronize()` you time
  the launch, and the kernel is charged to whoever waits next.
- **Adding up kernel times to get the step.** The sum leaves out all the waiting, which is most of a launch-bound
  step.
- **Counting views as kernels.** A layer has as many views as kernels. They cost the host time, the device nothing.
- **Reading the cost of asking off one small tensor.** It holds some computing too, and one interrupted call spoils it.
  Use several sizes, many rounds, and say how sure you are.
- **Comparing two ways one after the other.** A laptop that gets warm makes the second look slow. Take turns.
- **Carrying over a launch cost.** It depends on the host's CPU, the driver, and the number of arguments. Published
  values run from about 2 to 13 µs.

## How to explain it, in three sentences

A decode step is a few hundred kernels, however many requests are in it. The host needs a few microseconds to launch
each, so a GPU that runs them faster than that spends its time waiting. The step takes as long as the slower of the
two sides, and only where that is the host does a graph help.

## Questions you may be asked

<details>
<summary>How would you find out whether a service is launch-bound, without reading its code?</summary>

Take a profile of a few decode steps and look at the share of time in which the device is busy. Far below one, with
gaps between kernels, means that it waits for the host. A second sign: the time of a step hardly grows from batch 1 to
batch 8.

</details>

<details>
<summary>How would you measure what a launch costs on a GPU?</summary>

Warm up. Wait until the device is idle, launch a few hundred empty kernels without waiting, and take the host's time
divided by their number; more would fill the queue, and you would time the device. For the device's own time use
events, and hold it with a long kernel until all is launched, else the events time the host.

</details>

<details>
<summary>Why does fusing kernels help a launch-bound step even if the fused kernel is no faster?</summary>

Fewer launches. If launching sets the pace, the step's time is proportional to the number of kernels.

</details>

<details>
<summary>A faster GPU makes a step no faster. Why?</summary>

The host sets the pace. The new GPU is done sooner with each kernel and waits longer for the next.

</details>

## Summary

- One decode step of this model is several hundred kernels and as many views.
- Their number does not depend on the batch, unless an operation loops over requests.
- Asking for an operation costs microseconds before anything is computed: dispatch, Python, modules.
- The slower of host and device sets the pace; launch-bound means it is the host.

**Not measured here.** Nothing in this edition was run on a GPU by its authors. The code that measures launches there is
written and tested against a pretended GPU with known costs. On yours, `onelaunch bench --json > costs.json` keeps what it
finds, and the simulator of [chapter 13](13_gpus_you_dont_have.ipynb) can start from that instead of published figures:

```python
mine = costs.Costs.from_json(open("costs.json").read()).launch_costs()
simulate(tape, "T4", "graph", launch=mine)
```

## Exercises

[Exercise 1, Who waits](../exercises/ex01_who_waits.ipynb), judges what you write, in its page or in a notebook. And to
find out by hand:

1. Launch-bound or not? Decide for each, then work out the step with `step_ms`: (a) 350 kernels of 2 µs, launches of 5 µs;
   (b) 100 fused kernels of 12 µs, launches of 5 µs; (c) 1,000 kernels of 4 µs, launches of 6 µs; (d) as (c), in one
   graph: 1 µs between kernels and 10 µs to launch it.

<details>
<summary>Answers</summary>

(a) launch-bound: 350 x 5 µs and the last kernel, 1.75 ms. (b) not: 100 x 12 µs and the first launch, 1.2 ms. (c)
launch-bound: 6.0 ms. (d) nobody waits for the host: 1,000 x 5 µs and 10 µs are 5.0 ms. The graph gains a sixth, not a
multiple, since the kernels were nearly as long as their launches.

</details>

2. Count a prefill of 64 tokens. Which counts differ from a decode step, and why?
3. With 5 µs a launch, how long may a kernel run before the device is the slower side? How much work is that on a GPU
   with 1 TB/s?
4. Count a step of `"random:qwen3"`. It has two more norms a layer: does the difference to `"random:llama"` come out
   as you expect?
5. Run `costs.measure` while something else keeps your machine busy. What happens to the interval? Do the parts keep
   their shares?

## Further reading

- NVIDIA, "Getting started with CUDA Graphs": the V100's figures, and the C++ code that measured them.
- NVIDIA, "Constant time launch for straight-line CUDA graphs" (2024): why a node costs next to nothing on new drivers.
- PyTorch's documentation of `torch.utils._python_dispatch`, for what a dispatch mode can see.
- The [references](../book/references.md) for every figure quoted here.
"""

# %%
llm.shutdown()
