# %% [markdown]
"""
# In production

**Who this is for.** You run a service that decodes from graphs, or are about to, and want to know what it costs to
start, how it becomes slow without a word, and how to find that out from a profile.

**After this chapter** you can budget time and memory for a list of graphs, name what turns graphs off in five engines,
say what to log, and read a profile of your own service with `onelaunch trace`.

*About 60 minutes. Medium. You need [chapter 8](08_padding.ipynb) and [chapter 9](09_graph_runner.ipynb); no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. A service has graphs for up to 32 requests, and 67 run at once. Does anything fail?
2. One graph takes 0.06 s and 26 MiB, another 0.06 s and 8 MiB. Which is the larger batch, and what pays for them?
3. In a profile the device is busy for 2% of the time, and one kernel waits 463 ms. Is the service launch-bound?
4. A profile shows one `cudaGraphLaunch` and 425 kernels. How much would a graph save?

**Answers.** 1: no; every step runs eagerly, and nothing has to say so. 2: the first; the start of the service, and
memory that the KV cache does not get. 3: that cannot be told from these numbers: the 463 ms may be a synchronization;
look at what remains without it. 4: next to nothing; it is one already.

</details>
"""

# %%
import os
import time
import warnings
from collections import deque
from pathlib import Path
from tempfile import mkdtemp

from onelaunch import LLM, SamplingParams, viz
from onelaunch.padding import (
    capture_sizes,
    mini_sglang,
    nano_vllm,
    sglang,
    tensorrt_llm,
    vllm,
)

os.environ["KINETO_LOG_LEVEL"] = "6"  # the profiler says nothing of itself

# %% [markdown]
"""
## The start: time and memory

A service records its graphs before it answers the first request. Each size is a warm-up run and a capture. Watch it on
this machine, with a model so small that almost nothing but the recording itself is left:
"""

# %%
for sizes in ([], [1], [1, 2, 4, 8], capture_sizes(32)):
    start = time.perf_counter()
    with LLM("random:llama", cuda_graph_bs=sizes, max_running_req=32) as llm:
        seconds = time.perf_counter() - start
        kept = llm.engine.runner.graph_bytes if sizes else 0
    print(f"{len(sizes)} graphs: {seconds:.1f} s, {kept / 2**20:.1f} MiB")

# %% [markdown]
"""
Time grows with the number of graphs. Memory does not: the seven take what the four take. They share one pool, the
largest comes first, and the pool grows in blocks of 2 and 20 MiB, as PyTorch's does on a GPU
([chapter 5](05_memory.ipynb)). What engines report on GPUs ([sources](../book/references.md)):

| model, engine | sizes | time | memory |
|---|---|---|---|
| Llama-3.2-1B, vLLM | 35 | 14 s | 0.21 GiB |
| Llama-3-8B, vLLM | its list | 10 to 15 s | 0.32 GiB |
| Llama-3.1-8B, vLLM V1 | each | 0.05 to 0.07 s | 24 to 28 MiB large, 6 to 8 MiB small |
| Llama-4-Maverick, SGLang | its list | 19.5 s | 6.19 GB |
| 5,427 captures, PyTorch | each under garbage collection, then without | 80, then 24 s | |

The last row says what to look at first when a start is slow: Python's garbage collector ran before every capture
(pytorch/pytorch#158193).

**What memory costs you is requests.** It is not lost, it is missing in the KV cache. A token of Llama-3-8B keeps a key
and a value of 8 heads of 128 numbers in 32 layers, two bytes each:
"""

# %% tags=["nbval-check-output"]
token_bytes = 2 * 32 * 8 * 128 * 2
graphs_bytes = 0.32 * 2**30
tokens = graphs_bytes / token_bytes
print(f"one token: {token_bytes // 1024} KiB")
print(f"0.32 GiB of graphs: {tokens:,.0f} tokens of KV cache")
print(f"that is {tokens / 2048:.1f} requests of 2048 tokens")

# %% [markdown]
"""
One request fewer at a time. For a model that fills its card it can be the difference between starting and not: the KV
cache was sized first, and the capture runs out of memory (vllm-project/vllm#57475). Engines differ in whether they plan for it: SGLang by a rule of thumb, vLLM by capturing two
sizes in a scratch pool, mini-sglang, nano-vllm and TensorRT-LLM not at all ([chapter 5](05_memory.ipynb)).

**A restart is a start.** Add the seconds of the capture to what a rolling update or an autoscaler waits for. If it is
too much, record fewer sizes ([chapter 8](08_padding.ipynb) finds the list that wastes least), or restore instead of
recording: one project reports 26.7 s for capturing 256 graphs of Qwen3-32B and 3.5 s for restoring them (Foundry, on
H100).

## Slow without a word

A batch above the largest graph runs eagerly. The text is right. What happens to a service then?

Here is one, in twenty lines. Requests come evenly, each wants 128 tokens, each step gives every running request one
token. A step takes 2.5 ms from a graph and 10 ms without, and a little more for every request. This is a simulation,
and its times are made up; only their ratio of four is that of the report below.
"""

# %%
TOKENS, RATE = 128, 40.0  # tokens of a request, requests a second
BURST_AT, BURST = 5.0, 30  # thirty more at once


def step_seconds(batch: int, ceiling: int) -> float:
    """One decode step of ``batch`` requests."""
    return (0.0025 if batch <= ceiling else 0.010) + 0.00002 * batch


def serve(ceiling: int, seconds: float = 20.0) -> list[tuple[float, int]]:
    """How many requests run, over time, if there are graphs up to ``ceiling``."""
    now, step, came, burst = 0.0, 0, 0, 0
    running: deque[int] = deque()  # the step in which each is done
    seen = []
    while now < seconds:
        while running and running[0] <= step:
            running.popleft()
        due = int(now * RATE)
        if now >= BURST_AT and not burst:
            burst = BURST
            running.extend([step + TOKENS] * BURST)
        running.extend([step + TOKENS] * (due - came))
        came = due
        if step % 10 == 0:
            seen.append((now, len(running)))
        now += step_seconds(len(running), ceiling) if running else 0.001
        step += 1
    return seen


low, high = serve(32), serve(64)

# %% tags=["nbval-check-output"]
for ceiling, seen in ((32, low), (64, high)):
    before = max(count for now, count in seen if 2 < now < BURST_AT)
    after = min(count for now, count in seen if now > 15)
    print(f"graphs up to {ceiling}: at most {before} run before the burst,")
    print(f"    at least {after} run ten seconds after it")

# %%
viz.running_requests(
    {32: low, 64: high},
    burst_s=BURST_AT,
    caption="Simulated. The same requests, the same burst, two ceilings.",
)

# %% [markdown]
"""
The burst was over after seconds. With graphs up to 32 the service never comes back. Eager steps are slower, so
requests stay longer, so more run at once, so the batch stays above the ceiling, so the steps stay eager. Nothing
failed, no queue grew, and the load is one that the service carries easily.

That is a real report. On an L40, SGLang's defaults allowed 4,096 requests at once and recorded graphs up to 32. At a
load at which 23 ran with graphs up to 128, the median was 67 with graphs up to 32. Of 46 times that the ceiling was
crossed, none recovered (sgl-project/sglang#33483, #33900). A default was raised on an RTX 5090 for the same reason: 5.4
to 5.5 ms a token became 2.6 (#40346). Each of these figures is its author's.

**So the ceiling of the list belongs to the number of requests that may run at once.** Set both together. And look at
the list that comes out, because the rules leave out ceilings. For a service that runs up to 100 requests:
"""

# %% tags=["nbval-check-output"]
for made in (
    mini_sglang(100),
    nano_vllm(100),
    sglang(100),
    vllm(100),
    tensorrt_llm(100, padding=True),
    tensorrt_llm(100),
):
    lost = [n for n in range(1, 101) if isinstance(made.run_as(n), str)]
    fate = made.run_as(lost[-1]) if lost else ""
    print(f"{made.engine:23}{len(made.sizes):3} graphs, without one:", end=" ")
    print(f"{len(lost)} sizes ({fate})" if lost else "none")

# %% [markdown]
"""
The same edge in another place: vLLM's list was built in steps of 8 or 16, a service asked for 700 tokens a step, and
its largest batches, which are the ones that count, ran eagerly (vllm-project/vllm#40734).

## What turns graphs off

Read from the engines' source or reported by their users. The versions are in the [references](../book/references.md).

| what | what happens | where |
|---|---|---|
| a switch left on: `enforce_eager`, `--disable-cuda-graph` | everything runs eagerly | engines have one, and set while debugging it stays |
| a batch above the list | that step runs eagerly; nano-vllm raises above its list and below its ceiling | all |
| a batch that is not in the list | that step runs eagerly | TensorRT-LLM, unless padding is switched on |
| no free page for the dummy | that step is not padded, so it may find no graph | TensorRT-LLM |
| an attention backend that cannot be captured, or only for some batches | in pieces, or not at all: each backend says ALWAYS, UNIFORM_BATCH, UNIFORM_SINGLE_TOKEN_DECODE or NEVER | vLLM |
| prefill and decode in one batch | in pieces, if the backend asks for it | vLLM |
| encoders, LoRA, data parallelism, the width of speculation | checked at each step; what does not fit runs eagerly | SGLang |
| scales of the KV cache that are computed in the first pass | that pass runs eagerly | vLLM |
| an instance that only prefills | no graphs for decoding | SGLang |
| speculation that is switched off above some batch | no graph for the plain step: 5,450 tokens/s where 6,140 were possible | mit-han-lab/fastrl#4 |
| a function that changes its arguments | left out of the graph by `torch.compile` | flashinfer-ai/flashinfer#403 |

None of these is a fault of the engine. The fault is not to know. On this book's engine, two of them:
"""

# %% tags=["nbval-check-output"]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    refused = LLM(
        "random:llama", cuda_graph_max_bs=4, attention_backend="torch"
    )
refused.shutdown()
print(str(said[0].message).split(":")[0])

# %%
llm = LLM("random:llama", cuda_graph_max_bs=4, max_running_req=8)

# %% tags=["nbval-check-output"]
prompts = ["one", "two", "three", "four", "five", "six"]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for many in (3, 6, 2, 4, 6):
        llm.generate(
            prompts[:many], SamplingParams(max_tokens=9, ignore_eos=True)
        )
print(len(said), "warning:", str(said[0].message).split(":")[0])

# %% [markdown]
"""
The second says once what happens at every such step. The count is what you watch.

## What to log

Three numbers say whether graphs do their work. The runner counts them:
"""


# %% tags=["nbval-check-output"]
def graph_line(stats) -> str:
    """One line for the log of a service."""
    steps = stats.replays + stats.eager_fallbacks
    live = sum(size * times for (size, _), times in stats.steps.items())
    return (
        f"decode steps {steps}, from a graph {stats.replays / steps:.0%}, "
        f"eager {stats.eager_fallbacks}, "
        f"padding {stats.padded_rows / max(live, 1):.0%} on top"
    )


print(graph_line(llm.engine.runner.stats))
llm.shutdown()

# %% [markdown]
"""
Forty percent eager: somebody should be woken. What engines give you:

| engine | at the start | while it serves |
|---|---|---|
| SGLang | progress bar, time and memory of each phase | `cuda graph: True` or `False` in the line of each decode batch (since sgl-project/sglang#6201) |
| vLLM | progress bar, "Graph capturing finished in 14 secs, took 0.21 GiB" | with its metrics switched on, a table: tokens, padded tokens, mode (FULL, PIECEWISE, NONE), count |
| mini-sglang | progress bar, free memory | nothing |
| nano-vllm, TensorRT-LLM | nothing | nothing |
| this book's engine | progress bar, time, memory | `runner.stats`, and one warning |

Alert on the share of eager steps, not on throughput: in the report above throughput looked normal.

And alert on what is *silent* in the other sense. A stale input gives wrong text at full speed, and no counter moves.
`LLM(..., sanitize=True)` and `onelaunch check` belong into the tests ([chapter 11](11_the_museum.ipynb)).

## Read your own profile

When a service is slow, three questions come before any mending. Is the device busy? If not, what does it wait for? And
would a graph change that? PyTorch's profiler answers them, if you can read it. **Record it like this**, on the machine
that serves:
"""

# %%
import torch
from torch.profiler import ProfilerActivity, profile, record_function


def record(step, path: str, steps: int = 8) -> None:
    """Profile ``steps`` calls of ``step`` into ``path``."""
    kinds = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        kinds.append(ProfilerActivity.CUDA)
    for _ in range(3):  # compiling and lazy loading are not what you look for
        step()
    with profile(activities=kinds) as profiled:
        for number in range(steps):
            with record_function(f"step {number}"):
                step()
    profiled.export_chrome_trace(path)


folder = Path(mkdtemp())
device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.randn(64, 64, device=device)
record(lambda: [x @ x for _ in range(20)], str(folder / "mine.json.gz"))

# %% [markdown]
"""
vLLM and SGLang can be told to do the same while they serve, and put an annotation of their own around each step. Leave
out shapes and stacks at first: they make the file longer and slow the host down, which is what you are looking at.
Then:

```
onelaunch trace mine.json.gz
```

In Python it is `open_trace`. Without a GPU it says what is missing:
"""

# %%
from onelaunch.timeline.trace import TraceError, open_trace
from onelaunch.timeline.trace_report import as_text

try:
    print(as_text(open_trace(folder / "mine.json.gz")))
except TraceError as error:
    print(str(error).replace(str(folder), "..."))

# %% [markdown]
"""
So that you can read one here, we make one. The decode step of a model of a billion weights, as this book's engine runs
it, is priced for an H100 ([chapter 13](13_gpus_you_dont_have.ipynb) explains how), launched at 5 µs a kernel, and
written in the profiler's format. **Everything in it is simulated**, and so its answer is known.
"""

# %%
from dataclasses import replace

from onelaunch.engine.shapes import SHAPES, decode_tapes
from onelaunch.timeline import LaunchCosts, simulate
from onelaunch.timeline.chrome import from_steps

billion = replace(
    SHAPES["meta-llama/Meta-Llama-3-8B"],
    hidden_size=2048,
    intermediate_size=8192,
    num_hidden_layers=16,
    head_dim=64,
)
tape = decode_tapes(billion, [1], max_seq_len=1024)[1]
costs = LaunchCosts(launch_us=5, prepare_us=200, finish_us=60, delay_us=2)
eager = simulate(tape, "H100", "eager", launch=costs, context_len=512)
from_steps([eager] * 8, "H100, simulated").save(folder / "eager.json.gz")
profiled = open_trace(folder / "eager.json.gz")

# %%
print(as_text(profiled).split("Largest waits")[0].split("\n\n", 1)[1])

# %% [markdown]
"""
Read it from the top. The first sentence is the verdict. The table splits the time into five parts, which add up:

- **busy**: at least one stream runs something.
- **launch**: idle, and the launch of whatever came next had not arrived. Had the host been faster, this would be less.
- **sync**: the same, but the host sat in a synchronization. It waited for the device, and the device for it.
- **queue**: the launch was there, and the device did not begin it. Some of this is the small pause that a device makes
  between two kernels. If it is long, the kernel waited for something else: an event, another stream, another GPU.
- **graph**: idle between two kernels of one graph. The host has no part in it.

Then the steps. They are found by annotations; without any, by a kernel that comes back at equal distance. All that
follows is about the step of median time, so that one slow step does not count.

The last sentence is a **bound**. A graph cannot save more than the waits for launches. How much of it would it save?
Here we can look:
"""

# %%
graph = simulate(tape, "H100", "graph", launch=costs, context_len=512)
median = profiled.devices[0].steps.median
print(f"bound, from the profile: {median.saving_us / 1e3:.2f} ms")
print(f"saved, simulated: {(eager.step_us - graph.step_us) / 1e3:.2f} ms")

# %% [markdown]
"""
The difference is what a graph has itself: pauses between its kernels, which the bound sets to zero. The two steps as
two lanes each:
"""

# %%
viz.step_lanes([eager, graph], start_us=200, window_us=70)

# %% [markdown]
"""
A step of a profile can be drawn by the same figure: `onelaunch.timeline.trace_lanes.as_step` makes it, and
`viz.step_lanes([...], simulated=False)` draws it. And the command writes a page,
`eager.html`, in which you can zoom from the whole profile down to one launch. Below the kernels it has a lane of the
waits, coloured by their cause.

Once more, with the graph. What would *another* graph save?
"""

# %%
from_steps([graph] * 8, "H100, simulated").save(folder / "graph.json.gz")
again = open_trace(folder / "graph.json.gz").devices[0].steps.median
print(f"graph launches in a step: {again.graph_launches}")
print(f"a graph would save at most {again.saving_us:.0f} µs")
print(f"still idle, waiting for a launch: {again.share('launch'):.0%}")

# %% [markdown]
"""
Nothing, and yet the device waits: that is the host *between* the steps, which prepares and samples. No graph takes
that away. Engines overlap it with the device's work instead.

## Four profiles of others

The same command on public profiles (AMD-AGI/TraceLens, folder `tests/traces`, MIT). A test of this book checks these
numbers where the files are there:

| profile | kernels | busy | what it says |
|---|---|---|---|
| BERT-small, eager, H100 | 60 | 7.9% of 3.91 ms | launch-bound; a graph would save at most 3.59 ms |
| Qwen1.5-0.5B, prefill of 16 x 559 tokens, H100 | 1,465 | 91.9% of 49.65 ms | not launch-bound: nothing here for a graph |
| a decode step in vLLM, MI300X | 425 | 99.8% of 10.74 ms | one graph launch; a graph would save at most 0.03 ms |
| a decode step in SGLang, MI300X | 555 | 2.1% of 473.75 ms | see below |

The last one is a trap. Two percent! But 463 of the 474 ms are one wait, for work that had been launched long before
and hung on something that the profile does not show, while the host sat in a copy. Without it 10.5 ms remain, and the
device is busy for 93% of them, from one graph launch. **Look at the largest wait before you believe a share.**

## A checklist

Before the first request:

1. The list covers every batch that may run: its ceiling is the limit on running requests, and is in the list itself.
2. Time of the capture and memory of the graphs are in the log, and in the budget of a restart.
3. The KV cache was sized with the graphs taken off.
4. The attention backend says that it can be captured for the batches that you serve.
5. No switch for eager mode is left from the last debugging.
6. Text from graphs equals text without them, at sizes that are padded, and after batches shrank.

While it serves:

7. Share of eager steps, with an alert. Padding on top.
8. A profile of ten steps after each change of version, model or flags; read the verdict, keep the file.
9. Weights reloaded, memory slept and woken, adapters swapped: recorded again, or proved to be at the old addresses.

When it is slow:

10. Is it eager? Then why; see the table above.
11. Is the device busy? Then a graph is no help, and neither is a faster host.
12. Is it waiting between the steps? Then look at the scheduler and the sampler.

## Common mistakes

- **Debugging with graphs off, and leaving them off.** Put the switch into the command line, where it is seen, never
  into a default.
- **Recording for the average batch.** The ceiling is what counts, as the burst showed.
- **Profiling the first steps.** They compile and load. Warm up, then record.
- **Profiling with stacks, and believing the times.** Recording each Python call slows the host. A service can look
  launch-bound only because it is being looked at.
- **Taking the utilization of `nvidia-smi` for the answer.** It too is the share of time in which a kernel ran (so its
  manual), but over a sample of up to a second, and it does not say what the rest was spent on.

## How to explain it, in three sentences

Graphs cost a service some seconds at its start and some memory that would otherwise hold requests. They fall away
without an error whenever a step does not fit them, and then the service can stay slow after the cause is gone. So
count the eager steps, and when something is slow, let a profile say what the device waits for before you change
anything.

## Questions you may be asked

<details>
<summary>A service was fast yesterday and is four times slower today. Nothing was deployed. Where do you look?</summary>

At the number of running requests against the largest graph, and at the share of eager steps. A burst may have pushed
it above the ceiling, and eager steps keep it there. Shedding load for some seconds brings it back; a higher ceiling
keeps it from happening.

</details>

<details>
<summary>How do you tell from a profile that a service is launch-bound, and not merely idle?</summary>

For each wait of the device look at the launch of the kernel that ended it. If the call came late, it is launch-bound.
If the call had come long before, something else held the kernel up. If the host was in a synchronization, that is to
be removed first.

</details>

<details>
<summary>Why is "the device is idle for 40%, so a graph saves 40%" wrong?</summary>

Waits between steps remain, as do those in synchronizations, those that other streams cause, and the pauses inside the
graph. It is an upper bound, and only of those waits that come from launches.

</details>

<details>
<summary>What do you give up for twenty more graphs?</summary>

Some seconds at each start, and some hundreds of MiB at most, so a handful of requests in the KV cache. You gain less
padding. Measure both; chapter 8 computes the best list for your traffic.

</details>

## Summary

- A list of graphs is a budget: seconds at the start, requests in the KV cache.
- Above the ceiling a service is slow and right, and may stay there. The ceiling must cover what may run.
- Count eager steps. Only two of five engines do.
- `onelaunch trace` splits a device's time into busy and four kinds of waiting, and bounds what a graph can save.

**Not measured here.** Nothing in this chapter was run on a GPU: the service and the profiles are simulated, the public
profiles and all figures with a source are other people's.

## Exercises

1. Find the smallest ceiling from which the simulated service recovers. Then let the burst be 60 requests, and 200. From
   which ceiling on does it recover from any burst, and what is special about that number?
2. Give the simulated service a limit on running requests of 32, with the rest waiting in a queue. Does it recover?
3. Simulate the step of a billion weights with `launch_us=2` and `launch_us=20`. What does the verdict say, and from
   which launch cost on is it launch-bound?
4. Profile a service of yours. Which part is the largest after "busy", and what ends the largest wait?

## Further reading

- sgl-project/sglang#33483: the report behind the burst, with measurements and controls.
- vLLM's documentation, "CUDA Graphs": modes, what a backend declares, and how a batch finds its graph.
- PyTorch's documentation of `torch.profiler`: schedules for long runs, and what a trace holds.
- The [references](../book/references.md) for every figure quoted here.
"""
