# %% [markdown]
"""
# What a launch costs

**Who this is for.** You have heard that small-batch decoding is "launch-bound" and want to see where that comes from.

**After this chapter** you can count the operations of a decode step, say how many of them are kernels, and work out
from two numbers whether a GPU would wait for its host.

*About 20 minutes. Easy. You need chapter 0; no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. Is `x.view(8, -1)` a kernel? Is `x + 1`?
2. Does a decode step at batch 8 launch more kernels than one at batch 1?
3. A step has 350 kernels. The host needs 5 µs to launch one, the GPU 2 µs to run one. How long is the step, and who
   waits?

**Answers.** 1: no, a view only describes memory in another way; yes. 2: no, the same ones, on larger tensors (the
reference backend of this book is an exception: it treats one request after the other). 3: about 1.75 ms, 350 x 5 µs;
the GPU waits three fifths of the time.

</details>
"""

# %%
from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from onelaunch import LLM, SamplingParams, viz

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

## What the host pays

On a GPU, the host *launches* a kernel and goes on; the device runs it later. What does the host pay for one
operation? You can see it without a GPU, with a model so small that computing takes next to no time. What is left of a
step is the host's own work: Python, the dispatcher, the bookkeeping around a kernel.
"""

# %%
import itertools
import statistics
import time

with LLM("random:llama", device="cpu") as tiny:
    kernels = count_decode_step(tiny, batch_size=1).kernels.total()
    times = []
    params = SamplingParams(max_tokens=101, ignore_eos=True)
    for _ in tiny.stream("One launch", params):
        times.append(time.perf_counter())
steps = [after - before for before, after in itertools.pairwise(times)]
step_us = 1e6 * statistics.median(steps)
print(f"{kernels} kernels in {step_us:.0f} µs")
print(f"{step_us / kernels:.1f} µs each, on this machine")

# %% [markdown]
"""
This is the cost of *asking* for an operation through Python and PyTorch. On a GPU the launch itself comes on top.
Figures that others have measured, for a kernel that runs 2.9 µs on a V100 (NVIDIA, "Getting started with CUDA
Graphs"):

| how it is launched | time per kernel |
|---|---|
| launch, then wait for it | 9.6 µs |
| launch one after the other, wait at the end | 3.8 µs |
| all of them in one graph | 3.4 µs |

The first row is two thirds waiting. The last is close to the kernel itself.

## Who waits for whom

Put the two sides next to each other. The host launches kernels one after the other; the device runs them in the same
order, each as soon as it has been launched and the one before it is done. With `launch_us` for the host and
`kernel_us` for the device, a step of `n` kernels takes about `n * max(launch_us, kernel_us)`: **the slower side sets
the pace.**

The inference notes that this book quotes put a step at 350 launches of about 5 µs. If the kernels are shorter than
that, the step takes
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
- **Counting views.** A layer has as many views as kernels, and they cost the host time, but the device nothing.
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
- The slower of host and device sets the pace; launch-bound means it is the host.

**Not measured yet.** The cost of a launch on a GPU, and the same counts on GPUs of different speed, are not in this
chapter: nothing in this edition was run on a GPU. The figures above are other people's and carry their source.

## Exercises

1. Count a prefill of 64 tokens. Which counts differ from a decode step, and why?
2. With 5 µs a launch, how long may a kernel run before the device is the slower side? How much work is that on a GPU
   with 1 TB/s?
3. Count a step of `"random:qwen3"`. It has two more norms a layer: does the difference to `"random:llama"` come out
   as you expect?

## Further reading

- NVIDIA, "Getting started with CUDA Graphs": the table above, and the C++ code that measured it.
- PyTorch's documentation of `torch.utils._python_dispatch`, for what a dispatch mode can see.
- The [references](../book/references.md) for every figure quoted here.
"""

# %%
llm.shutdown()
