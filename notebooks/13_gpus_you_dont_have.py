# %% [markdown]
"""
# GPUs you don't have

**Who this is for.** You have no GPU, or one, and somebody asks what graphs would bring on another.

**After this chapter** you can price a decode step on a GPU from its data sheet and a model's shapes, say from that
whether a graph will help, and say how far such a number can be trusted, because you will have seen it beside
measurements that others published.

*About 60 minutes. Medium. You need [chapter 1](01_what_a_launch_costs.ipynb) for launches and
[chapter 3](03_first_capture.ipynb) for the tape; no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. A product of one row with a matrix of 4096 x 4096 in 16 bits: how many bytes does it read, how many operations does
   it compute, and which of the two takes longer on a GPU with 3,350 GB/s and 989 TFLOP/s?
2. Batch 64 instead of 1. Which kernels of a decode step become more efficient, and which do not?
3. The same engine, the same model, on a GPU that is four times as fast. Does a graph bring more or less?
4. A simulation is within 5% of all 10 rows that its parameters were fitted to. What do you still not know?

**Answers.** 1: 33.6 MB and 33.6 million operations; the bytes, 10 µs against 0.03. 2: the products, whose weights are
read once for all rows; attention doesn't, each request reads a cache of its own. 3: more: the device's part shrinks,
the host's stays. 4: what it says of a row that it has not seen.

</details>
"""

# %%
from collections import defaultdict
from dataclasses import replace
from statistics import median

import torch

from onelaunch import viz
from onelaunch.engine.shapes import SHAPES, decode_tapes
from onelaunch.timeline import (
    HARDWARE,
    Efficiency,
    KernelCost,
    LaunchCosts,
    hardware,
    kernel_costs,
    simulate,
    speedup,
    time_us,
)
from onelaunch.timeline.fusion import fused_costs
from onelaunch.timeline.published import (
    GAIN,
    compare,
    engine_parameters,
    not_simulated,
    published_rows,
)
from onelaunch.timeline.sweeps import break_even_steps, gains, padding
from onelaunch.timeline.tapes import tape_costs

# %% [markdown]
"""
No step in this chapter runs on a GPU. Every time below is **simulated**, unless it is called published; then somebody
measured it, and the source is beside it.

## Price one kernel

Start with a single product: one row of 4,096 numbers times a matrix of 4,096 x 4,096, in 16 bits. It has to read the
matrix, and it has to compute. Each takes time, and the two overlap. So a kernel takes as long as the *slower* of them:
"""

# %% tags=["nbval-check-output"]
gpu = hardware("H100")
print(gpu)
for rows in (1, 64, 512):
    moved = 2 * (4096 * 4096 + 2 * rows * 4096)
    computed = 2 * rows * 4096 * 4096
    memory_us = moved / (gpu.memory_gb_s * 1e3)
    compute_us = computed / (gpu.fp16_tflops * 1e6)
    print(
        f"{rows:4} rows: {memory_us:5.2f} µs of memory, {compute_us:5.2f} of math"
    )

# %% [markdown]
"""
That is the [**roofline**](../book/glossary.md#roofline) model (Williams, Waterman and Patterson, 2009). One row or 64:
the same time, because the matrix is read once for all of them. Only with hundreds of rows does arithmetic take over.

A data sheet is a promise. Kernels reach a share of it, and even an empty one takes some time. `time_us` has both as
parameters:
"""

# %% tags=["nbval-check-output"]
product = KernelCost(
    "product", "matmul", bytes=33_570_816, operations=33_554_432, rate="fp16"
)
tiny = KernelCost(
    "add", "elementwise", bytes=24_576, operations=4096, rate="fp32"
)
for efficiency in (
    Efficiency(memory=1, compute=1, floor_us=0),
    Efficiency(),
    Efficiency(memory=0.8, added_us=3),
):
    times = [time_us(kernel, gpu, efficiency) for kernel in (product, tiny)]
    print(f"{times[0]:5.2f} {times[1]:5.2f} µs with {efficiency}")

# %% [markdown]
"""
What others found that kernels reach:

| who | share of the bandwidth |
|---|---|
| gpt-fast, decode on an A100 | 69% |
| calm, decode on an RTX 4090 | 91% |
| Llama-3.2-1B in vLLM and SGLang on an H100 | at most 50%; a single large kernel got 78% |
| aiconfigurator's rule for nearly every GPU | 80%, and 3 µs for each memory operation |

([Sources](../book/references.md#pricing-a-step).) The default here is 80%, and at least 0.8 µs for a kernel.

## Price a tape

A [tape](../book/glossary.md#tape) is a list of kernels with shapes. So it can be priced, kernel by kernel. And a tape
can be recorded from shapes alone, without a weight or a GPU. Here is Llama-3-8B, cut to two layers to keep it short:
"""

# %%
llama_8b = SHAPES["meta-llama/Meta-Llama-3-8B"]
two_layers = replace(llama_8b, num_hidden_layers=2)
tape = decode_tapes(two_layers, [8], max_seq_len=2048, dtype=torch.float16)[8]


def by_kind(costs) -> dict[str, tuple[int, float, float]]:
    """Kind -> how many, megabytes, millions of operations."""
    found = defaultdict(lambda: [0, 0.0, 0.0])
    for cost in costs:
        found[cost.kind][0] += 1
        found[cost.kind][1] += cost.bytes / 1e6
        found[cost.kind][2] += cost.operations / 1e6
    return dict(found)


# %% tags=["nbval-check-output"]
for title, length in (("as recorded", None), ("paged, 500 tokens", 500)):
    print(f"{title:20} kernels       MB    million operations")
    for kind, (many, mb, millions) in by_kind(
        kernel_costs(tape, context_len=length)
    ).items():
        print(f"  {kind:18} {many:7} {mb:8.1f} {millions:10.1f}")

# %% [markdown]
"""
Read the two tables slowly; the rules of `kernel_costs` are in them.

- **Products** read every weight once: two layers and the logits are two gigabytes.
- A **gather** reads what it gathers, not the table that it gathers from. An in-place write of rows counts the rows.
- **Views** are not there. They are geometry, not kernels.
- The gather backend of this book copies `max_seq_len` tokens of every request, and reads the copy, however few tokens
  there are. That is the price of a fixed shape. A *paged* kernel reads the tokens that there are, where they lie. The
  second table prices one in its place.

## The figure that carries the idea

Each kind of kernel does some number of operations for each byte that it moves. That number decides what it waits for.
Here are the kernels of a whole step of Llama-3-8B, 1,000 tokens a request, under the roof of an H100:
"""


# %%
def unfused(batch: int):
    """The step as PyTorch runs it: all 32 layers, attention paged."""
    return tape_costs(
        llama_8b,
        batch,
        max_seq_len=1008,
        context_len=1000,
        dtype=torch.float16,
    )


viz.roofline(
    {f"batch {batch}": unfused(batch) for batch in (1, 8, 64, 256)}, "H100"
)

# %% [markdown]
"""
At batch 1 everything stands far to the left: the step is a long read of memory. Products climb with the batch.
Attention stays where it is, whatever the batch: each request brings its own keys and values.

## PyTorch's operators are not an engine's kernels

How many kernels does that step have?
"""

# %% tags=["nbval-check-output"]
serving = engine_parameters("vLLM, SGLang")
pegainfer = engine_parameters("pegainfer")
qwen_4b = SHAPES["Qwen/Qwen3-4B"]
print("Llama-3-8B, operators of PyTorch:", len(unfused(1)))
fused = fused_costs(llama_8b, 1, 1000, fusion=serving.fusion, dtype="fp16")
print("the same in a serving engine:   ", len(fused))
rust = fused_costs(qwen_4b, 1, 1000, fusion=pegainfer.fusion)
print("Qwen3-4B in pegainfer:          ", len(rust))

# %% [markdown]
"""
Three numbers, and you must say which one you mean.

- **PyTorch's operators** come from the tape, and it was recorded on a CPU. A norm is eight of them there (to float32,
  square, mean, and so on), a rotation three. Where PyTorch has a kernel for the whole norm, as its newer releases have
  on GPUs, `F.rms_norm` is one.
- **A serving engine** has written each of those as one kernel, has one product for q, k and v, and adds to the residual
  inside the next norm. That is a list, not a recording: `fusion.fused_costs` makes it from the model's shapes and from
  what an engine fuses.
- **pegainfer**'s author published the list of its 11 kernels a layer, and says "about 401" for the whole. By his list
  it is 36 x 11 and four more, 400.

For other models the numbers are of the same kind. A model of 70 billion weights needs no more than its shapes either;
here one of eight GPUs' share of it:
"""

# %%
llama_7b = SHAPES["meta-llama/Llama-2-7b-hf"]
llama_70b = SHAPES["meta-llama/Meta-Llama-3-70B"]
tapes = {
    name: (config, ranks, tape_costs(config.shard(ranks), 1, context_len=1000))
    for name, config, ranks in (
        ("Llama-2-7B", llama_7b, 1),
        ("Llama-3-8B", llama_8b, 1),
        ("Llama-3-70B, 1/8", llama_70b, 8),
    )
}

# %% tags=["nbval-check-output"]
print("                  operators  engine  GB read at batch 1")
for name, (config, ranks, recorded) in tapes.items():
    listed = fused_costs(config, 1, 1000, fusion=serving.fusion, ranks=ranks)
    read = sum(cost.bytes for cost in recorded) / 1e9
    print(f"{name:17}{len(recorded):10}{len(listed):8}{read:10.1f}")

# %% [markdown]
"""
(With eight GPUs the engine adds up over the ranks twice a layer; these sums are in its list and not on the tape.)

What does *not* change is the reading. Weights and cache are the same bytes, fused or not:
"""

# %% tags=["nbval-check-output"]
for name, costs in (("operators", unfused(1)), ("engine", fused)):
    kinds = by_kind(costs)
    moved = {kind: f"{mb / 1e3:.2f} GB" for kind, (_, mb, _) in kinds.items()}
    print(f"{name:10} {moved}")

# %% [markdown]
"""
Fusing saves little memory traffic at batch 1. It saves launches, which is also what a graph saves. **The better an
engine fuses, the less a graph has left to save.**

## Two lanes

Now lay it out in time. The host launches, the device runs, and between them stands a queue. On CUDA it holds about a
thousand launches; a host that is further ahead has to wait (measured by users: 1,000 in a stream). `simulate` does
that, for three ways to launch:

- **eager**: one launch for each kernel;
- **graph**: one for all of them;
- **piecewise**: attention eagerly, everything between as graphs, which vLLM does for attention that cannot be captured.
"""

# %% tags=["nbval-check-output"]
print("launch   mode       step ms  device busy  launch-bound  times eager")
for launch_us in (3, 40):
    launch = LaunchCosts(launch_us=launch_us)
    eager = simulate(fused, "H100", launch=launch)
    for mode in ("eager", "piecewise", "graph"):
        step = simulate(fused, "H100", mode, launch=launch)
        print(
            f"{launch_us:3} µs   {mode:10} {step.step_us / 1e3:6.2f}"
            f" {step.busy_share:10.0%} {step.launch_bound!s:>12}"
            f" {speedup(eager, step):12.2f}"
        )

# %%
viz.step_lanes(
    [
        simulate(fused, "H100", mode, launch=LaunchCosts(launch_us=40))
        for mode in ("eager", "graph")
    ]
)

# %% [markdown]
"""
The launch cost decides everything, and it differs a lot. A launch from C++ takes 1.3 to 3 µs. From a Python engine,
with everything above the launch, it takes about 40 µs a kernel: we come to where that number is from.

## The same step on other GPUs

A serving engine written in Python, Llama-3-8B in float16, one request of 1,000 tokens. Before you run it: on which of
these will a graph bring most?
"""

# %% tags=["nbval-check-output"]
weights_gb = sum(cost.bytes for cost in fused if cost.kind == "matmul") / 1e9
print(f"{weights_gb:.1f} GB of weights")
print("GPU            eager    graph  gain   the device waits")
for name in list(HARDWARE)[:10]:
    found = gains(serving.on(llama_8b, name, dtype="fp16"), [1], [1000])[0]
    fits = "" if HARDWARE[name].memory_gb > weights_gb * 1.1 else "  too small"
    print(
        f"{name:12} {found.eager.step_us / 1e3:5.1f} {found.graph.step_us / 1e3:7.1f}"
        f" ms {found.speedup:5.2f}   "
        f"{found.eager.device_waits_us / found.eager.step_us:4.0%}{fits}"
    )

# %% [markdown]
"""
**The faster the GPU, the more a graph brings.** On a T4 the device needs 60 ms for what the host launches in 13: a
graph saves nothing. On a B200 the device would be done in under 4 ms, and waits for the same 13. Nothing about the
graph is better there. The host simply did not get faster.

So "graphs make it twice as fast" is no property of graphs, nor of a model. It needs all four: model, engine, GPU,
batch.

Every field of that table of GPUs says where it is from, and how sure it is:
"""

# %% tags=["nbval-check-output"]
for field in ("memory_gb_s", "fp32_tflops", "l2_mb"):
    print(f"B200, {field}: {hardware('B200').sources[field]}")

# %% [markdown]
"""
A GPU that is not in the table is `Hardware(...)` with the numbers of its data sheet.

## Is any of this true?

Everything up to here could be wrong. So: `published.json` in this package has every public measurement that we found
and that states model, GPU, batch, and the time of a step without and with graphs. Each is simulated. The rules:

- **One set of parameters for all rows of an engine.** None is tuned for a row.
- Parameters are taken from sources where there are any. Where not, they are *fitted*, to all rows of the engine
  together, and it says so.
- What was fitted to a row proves little about that row. So each fitted row is also **predicted from the others** of
  its engine, with parameters that have not seen it.
"""

# %% tags=["nbval-check-output"]
rows = published_rows()
compared = [compare(row) for row in rows]
for name in dict.fromkeys(row.engine for row in rows):
    many = sum(row.engine == name for row in rows)
    engine = engine_parameters(name)
    fitted = ", ".join(
        f"{key} {value:g}" for key, value in engine.fitted.items()
    )
    print(f"{name}, {many} rows. Fitted: {fitted or 'nothing'}")

# %% tags=["nbval-check-output"]
print("ms without and with graphs")
print(
    f"{'':28}{'published':>13}{'simulated':>13}{'error':>11}{'from others':>13}"
)
for found in compared:
    row, eager, graph = found.row, found.eager, found.graph
    line = f"{row.id:27}{row.eager_ms:7.2f}{row.graph_ms:6.2f}"
    line += f"{eager.step_us / 1e3:7.2f}{graph.step_us / 1e3:6.2f}"
    line += f"{found.eager_error:+6.0%}{found.graph_error:+5.0%}"
    if row.left_out_ms:
        eager_ms, graph_ms = row.left_out_ms
        line += f"{eager_ms / row.eager_ms - 1:+8.0%}"
        line += f"{graph_ms / row.graph_ms - 1:+5.0%}"
    print(line)

# %%
viz.simulated_against_published(compared)

# %% tags=["nbval-check-output"]
errors = [abs(e) for f in compared for e in (f.eager_error, f.graph_error)]
left_out, untouched = [], []
for found in compared:
    row = found.row
    if row.left_out_ms is None:
        untouched += [abs(found.eager_error), abs(found.graph_error)]
    else:
        eager_ms, graph_ms = row.left_out_ms
        left_out.append(abs(eager_ms / row.eager_ms - 1))
        left_out.append(abs(graph_ms / row.graph_ms - 1))
print(f"median error, all {len(errors)} times:         {median(errors):.1%}")
print(f"predicted from the other rows:     {median(left_out):.1%}")
print(
    f"nothing fitted ({len(untouched)} times):          {median(untouched):.1%}"
)
print(f"both, as one list:                 {median(left_out + untouched):.1%}")

# %% [markdown]
"""
Half of all simulated times are within about 5% of what was published, and half of the honest predictions within about
7%. It works best where a report has one engine on one machine at several batches: three fitted numbers explain the
twelve times of six rows, from batch 1 to 128. Now the part that matters more: where it is wrong.

### The rows that miss

- **metaseq, OPT-175B on eight A100** (half of what was published). We used defaults and left out the sums over eight
  GPUs, 192 in a step. The engine's own kernels are not known. Nothing can be said, and the row says that.
- **llama.cpp** (up to a third off, both ways). One efficiency for its four GPUs does not exist, as the next cell
  shows. Its kernels for 4-bit weights get much more out of an RTX 4090 than out of an H100, and the K80 is from 2014.
  The *gain* from graphs comes out right on all four.
- **vLLM with a 32B model in 4 bits** (eager 16% too fast). Its host was a virtual machine, kept to 16 of its cores; the
  two GPT-2 rows ran elsewhere. A launch cost belongs to a machine, not to an engine.
- **Chatterbox at batch 1** (eager 17% too slow). Its own eager times at batch 1 and 8 differ by 5 ms, though the
  launches are the same and both wait for them, and one step in twenty took 30 ms: the machine was not steady.
- **pegainfer, eager** (12 and 19% too fast). Its host did more than launch: about 292 allocations a step in the slower
  row, and hidden event calls at every launch, until the author removed both.

"""

# %% tags=["nbval-check-output"]
for found in compared:
    row = found.row
    if row.engine == "llama.cpp":
        costs = row.costs(engine_parameters(row.engine).fusion)
        moved = sum(cost.bytes for cost in costs if cost.kind == "matmul")
        share = moved / 1e6 / row.graph_ms / hardware(row.gpu).memory_gb_s
        print(
            f"{row.gpu:16} {share:.0%} of the bandwidth in the step with a graph"
        )

# %% [markdown]
"""
### Gain or no gain?

That is the question you ask before you build anything. Say that a graph gains if it makes a step at least 5% faster.
Does the simulation say the same as the measurement?
"""

# %% tags=["nbval-check-output"]
right = [found for found in compared if found.right_sign]
print(
    f"{len(right)} of {len(compared)} right at a threshold of {GAIN:.2f}; wrong:"
)
for found in compared:
    if not found.right_sign:
        print(
            f"  {found.row.id:24} published {found.row.gain:.2f},"
            f" simulated {found.gain:.2f}"
        )

# %% [markdown]
"""
The misses are close calls, and pegainfer's host work again. Where a graph makes a large difference, or none, the
simulation says so.

### Rows that cannot be simulated

Others are quoted everywhere and lack what is needed:
"""

# %% tags=["nbval-check-output"]
for row in not_simulated():
    times = [row.eager_ms, row.graph_ms]
    shown = " -> ".join("?" if ms is None else f"{ms:.2f}" for ms in times)
    print(f"{row.model}, {row.engine}: {shown} ms. {row.why}. {row.source}")

# %% [markdown]
"""
The first two are worth a guess: SGLang's Llama-3-8B looks like an H100. If it was one, the graph's 7.06 ms is close to
the 6.9 of the table above, and the eager step of 9.28 far from its 13.9. That machine's host would be faster than those
of the rows we fitted. But that is a guess, so the rows stay out.

### Where 40 µs come from

Look at the fitted launch costs again. Engines that have little in common but Python come out alike, a little under
40 µs for a kernel: vLLM and SGLang with fused kernels, and fastllm-py with kernels launched through CuPy (whose list of
kernels is our guess). Plain PyTorch comes out at 6 µs for an *operator* on a laptop, and at 21 on a rented machine. A
launch from C++ was measured at 1.3 to 3 µs. So what a graph saves in those engines is mostly not CUDA's launch. **It is
Python between two launches.** One author measured that from the other side; see the end of this chapter.

## A rule of thumb, and ours

The inference notes that this book quotes have factors for a model of 70 billion weights, from batch 1 to 256, without
saying on what. The number that they lack is the launch cost. So choose *one* launch cost that gives their factor at
batch 1, and see what follows for the others. The GPUs are a guess as well: eight H100, and 10 µs for each sum over them.
"""

# %%
NOTES = {1: (1.35, 1.45), 8: (1.20, 1.30), 64: (1.08, 1.15), 256: (1.02, 1.06)}
setup = serving.on(llama_70b, "H100", ranks=8, all_reduce_us=10)
low, high = 1.0, 60.0
while high - low > 0.01:  # halve until the gain at batch 1 is 1.40
    middle = (low + high) / 2
    launch = LaunchCosts(launch_us=middle)
    found = gains(replace(setup, launch=launch), [1], [1000])[0].speedup
    low, high = (middle, high) if found < 1.40 else (low, middle)
setup = replace(setup, launch=LaunchCosts(launch_us=low))

# %% tags=["nbval-check-output"]
print(f"one launch cost that gives 1.40 at batch 1: {low:.1f} µs")
ours = {g.batch: g.speedup for g in gains(setup, NOTES, [1000])}
for batch, (least, most) in NOTES.items():
    print(
        f"batch {batch:3}: notes {least:.2f} to {most:.2f}, ours {ours[batch]:.2f}"
    )
small = replace(setup, config=llama_7b, ranks=1)
one = gains(small, [1], [1000])[0]
print(f"7B at batch 1: notes 1.40 to 1.60, ours {one.speedup:.2f}")
prompt = [small.step(2048, 1, mode) for mode in ("eager", "graph")]
print(f"prefill of 2,048: notes 1.00, ours {speedup(*prompt):.2f}")

# %%
curve = [1, 2, 4, 8, 16, 32, 64, 128, 256]
viz.speedups(
    {"70B": {g.batch: g.speedup for g in gains(setup, curve, [1000])}},
    {"70B": NOTES},
    caption="Simulated, eight H100. The bars are the inference notes' factors.",
)

# %% [markdown]
"""
The direction is the same: less gain as the batch grows, none for a prefill. (The prefill is priced without its
attention; its products alone hide the launches.) The shapes differ. In the simulation eight requests take hardly longer
than one, because the weights dominate, so the gain stays at first and falls late. The notes have it fall at once. And
one launch cost does not serve both models: on one H100 the 7B's kernels are long enough to hide it. A rule of thumb
hides the machine that it was made on.

## Two small questions, priced

**What does it cost to run 37 as 48?** [Chapter 8](08_padding.ipynb) counted rows. Here are microseconds:
"""

# %% tags=["nbval-check-output"]
h100 = serving.on(llama_8b, "H100", dtype="fp16")
for size, length in ((48, 1000), (48, 8000), (64, 1000)):
    found = padding(h100, 37, size, length)
    print(
        f"37 as {size}, {length:5} tokens each: {found.extra:+.1%};"
        f" eagerly {found.eager.step_us / found.exact.step_us - 1:+.0%}"
    )

# %% [markdown]
"""
Thirty percent more rows, and hardly any time: the weights are read anyway, and a dummy request has one token. That is
why engines pad.

**When has a capture paid for itself?** Recording one size takes about 0.06 s in vLLM with an 8B model:
"""

# %% tags=["nbval-check-output"]
for batch in (1, 32, 256):
    g = gains(h100, [batch], [1000])[0]
    steps = break_even_steps(60_000, g.eager, g.graph)
    print(
        f"batch {batch:3}: gain {g.speedup:.2f}, paid after {steps:.0f} steps"
    )

# %% [markdown]
"""
## Common mistakes

### A GPU without the type

Turing's tensor cores don't know bfloat16. A table that quietly used another rate would be wrong by a factor:
"""

# %% tags=["nbval-check-output"]
try:
    simulate(fused_costs(llama_8b, 1, 100, dtype="bf16"), "T4")
except ValueError as error:
    print(error)

# %% [markdown]
"""
### Counting operators and calling them kernels

Price the unfused step with a serving engine's launch cost, and the gain is fantastic:
"""

# %% tags=["nbval-check-output"]
for name, costs in (("operators", unfused(1)), ("engine's kernels", fused)):
    modes = [
        simulate(costs, "H100", mode, launch=serving.launch)
        for mode in ("eager", "graph")
    ]
    print(f"{name:17} gain {speedup(*modes):.2f}")

# %% [markdown]
"""
The 40 µs are those of a *fused* kernel and the Python around it. A single operator of PyTorch costs the host much
less. A launch cost is only worth something together with the list that it was fitted to.

### Fitting, and showing the fit as a prediction

With as many parameters as rows, every model is perfect. Ask for the row that was left out.

### Believing the floor

Data sheets say nothing about a kernel that moves 24 KB. The 0.8 µs here and the gaps between kernels (1.3 µs in a
stream, 0.5 in a graph) are read off two published experiments with empty and short kernels, on an H100 and a V100. On
other GPUs they differ, and in a step of hundreds of kernels that adds up.

## How to explain it, in three sentences

A kernel takes as long as the slower of its bytes and its operations, and a step is a list of kernels, so a data sheet
and a model's shapes give you the device's time. The host's time is the number of launches times what one launch costs
with everything above it, and a graph makes that one launch; whichever of the two is longer decides. Beside 25
published measurements such a simulation is within about 7% half of the time for rows that it was not fitted to, and
it fails where an engine does something that nobody wrote down.

## Questions you may be asked

<details>
<summary>Why does decoding at batch 1 reach only a thousandth of a GPU's TFLOP/s?</summary>

Each weight is read for two operations (one multiplication, one addition) and two bytes. An H100 can do 295 operations
in the time it needs for one byte. So arithmetic is idle nearly all of the time, and no kernel can change that; only
more rows for each weight can.

</details>

<details>
<summary>You buy GPUs that are twice as fast and your eager server gets 10% faster. Why?</summary>

It was launch-bound, or became so. The device's part halved, the host's part did not. Look at the device's busy share
in a profile; graphs, fewer kernels or a larger batch are the ways out.

</details>

<details>
<summary>What would you measure first to know whether graphs help a service?</summary>

The step time and the time that the device is busy in it, at the batch sizes the service really has. If the device is
busy nearly all the time, there is nothing to gain. No simulation needed.

</details>

<details>
<summary>Tensor parallelism over eight GPUs: does it make graphs more or less useful?</summary>

More. Each GPU reads an eighth of the weights, so its kernels are shorter, and there are as many launches on every rank
as before, and the sums between the ranks on top.

</details>

<details>
<summary>What does the simulation leave out?</summary>

Caches (what lies in L2 is read faster), kernels that overlap, clocks that fall under load, memory that is not reached
evenly, the links between GPUs, other processes on the host, and everything that an engine does and nobody published.

</details>

## Summary

- A kernel's time is the larger of bytes over bandwidth and operations over rate, each with an efficiency.
- Products become more efficient with the batch; attention does not.
- Operators, an engine's kernels and launches are three numbers. Say which.
- Whether a graph helps depends on model, engine, GPU and batch together. Faster GPUs need graphs more.
- In Python engines a graph saves Python, about 40 µs a kernel, much more than CUDA's launch.
- Against published rows: half of the predictions within about 7%, the sign right in 22 of 25. The misses have reasons.

## Exercises

1. Add your own GPU with `Hardware(...)` and find the batch at which Llama-3-8B's products leave the slope.
2. Which launch cost makes a graph useless for Llama-3-8B on an L4? Find it with `gains`.
3. Change one rule: let `Fusion(attention_kernels=2)` stand for split attention. What does it do to the gain at batch 1
   on a B200?
4. Refit vLLM and SGLang without the 32B row (`benchmarks/published.py` shows how), and explain what its prediction
   says about host machines.
5. The report says that Chatterbox's T3 ran in float16. Fit its rows again as float32 (`replace(row, dtype="fp32")`).
   The errors stay the same. Which parameter changes, and which of the two do you believe now?

## Further reading

- S. Williams, A. Waterman, D. Patterson, *Roofline: An Insightful Visual Performance Model for Multicore
  Architectures*, Communications of the ACM 52 (4), 2009.
- J. Su, *Is What CUDA Graph Saves Really Launch Time?*, openinfer's blog, September 2026: what a launch costs from C++
  and from Python, measured on a GB300.
- pegainfer, part 4: the kernels of a layer one by one, and what stood in the way of a capture.
- The [references](../book/references.md#published-steps) list every row of this chapter with its source.
"""
