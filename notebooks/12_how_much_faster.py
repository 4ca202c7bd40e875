# %% [markdown]
"""
# How much faster

**Who this is for.** You can record a step and replay it, and somebody asks: what does it bring us?

**After this chapter** you can say when a graph makes a step several times as fast and when it makes no difference, work
out after how many steps a capture has paid for itself, and name what it cannot speed up.

*About 50 minutes. Medium. You need [chapter 1](01_what_a_launch_costs.ipynb) for who waits for whom,
[chapter 3](03_first_capture.ipynb) for capture and replay, and [chapter 8](08_padding.ipynb) for padding; no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. A graph makes a step at batch 1 half again as fast. What do you expect at batch 256, and why?
2. Why does nobody replay a long prefill from a graph?
3. A capture takes 14 seconds and saves 2 ms a step. When has it paid?
4. The model's part of a step is replayed three times as fast, and the step as a whole only twice as fast. Where is the
   rest?

**Answers.** 1: next to nothing; the same kernels have more work, so the device no longer waits for the host. 2: its
kernels are long, and its shape changes with the prompt. 3: after 7,000 steps. 4: in what the host does around the
replay: preparing the batch, copying inputs, choosing tokens.

</details>
"""

# %%
import time

import torch
from torch import nn

from onelaunch import LLM, SamplingParams, cuda, viz
from onelaunch.machine import in_words, machine

DEVICE = "cpu" if cuda.is_emulated else "cuda"
HERE = f"Measured on {in_words(machine(), ('torch',))}."
# Host and device are one CPU here. A second thread would only blur the times.
torch.set_num_threads(1)

# %% [markdown]
"""
Three kinds of numbers appear below, and each says which it is: **measured** (on the machine that ran this page),
**simulated** (a GPU that nobody had at hand), **quoted** (from others, with the source).

## More work in every kernel

The experiment is simple. Take a step, replay it, divide the times. Then give its kernels more work and do it again.

The step is a stack of feed-forward layers, as in a Llama. It has two knobs: how wide it is, and how many rows it
computes. A row is a request of a decode step. The number of kernels is the same at every setting.
"""


# %%
class Layer(nn.Module):
    """[rows, width] -> the same: norm, one product for gate and up, another back."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate_up = nn.Linear(width, 6 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.gate_up(self.norm(x)).chunk(2, dim=-1)
        return x + self.down(nn.functional.silu(gate) * up)


def make_step(width: int, rows: int):
    """A step of twelve layers on fixed inputs."""
    torch.manual_seed(0)
    layers = nn.Sequential(*(Layer(width) for _ in range(12)))
    layers = layers.to(DEVICE).requires_grad_(False)
    x = torch.randn(rows, width, device=DEVICE)

    @torch.inference_mode()
    def step() -> torch.Tensor:
        return layers(x)

    return step


def capture(step) -> tuple[cuda.CUDAGraph, torch.Tensor]:
    """Warm up and record. The graph, and its output, which has to be kept."""
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        step()
    cuda.current_stream().wait_stream(side)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = step()
    return graph, out


# %% [markdown]
"""
How to time it? Both ways in turn, so that what else the machine does hits both, and the shortest time of each: other
work only ever adds. Waiting for the device belongs into the time, and the first replays do not (the emulator uses them
to find its fastest way to play a tape).
"""


# %%
def shortest_ms(*ways, seconds: float = 0.4) -> list[float]:
    """The shortest run of each way in milliseconds, taken in turn."""
    for _ in range(10):
        for run in ways:
            run()
    best = [float("inf")] * len(ways)
    rounds, end = 0, time.perf_counter() + seconds
    while rounds < 12 or time.perf_counter() < end:
        rounds += 1
        for at, run in enumerate(ways):
            cuda.synchronize()
            start = time.perf_counter()
            run()
            cuda.synchronize()
            best[at] = min(best[at], 1e3 * (time.perf_counter() - start))
    return best


WIDTHS, ROWS = (32, 96, 256), (1, 4, 16, 64)
times = {}  # (width, rows) -> milliseconds eager, and replayed
kernels = 0
for width in WIDTHS:
    for rows in ROWS:
        step = make_step(width, rows)
        graph, out = capture(step)
        times[width, rows] = shortest_ms(step, graph.replay)
        if cuda.is_emulated:
            kernels = len(graph.tape.kernels)

viz.speedups(
    {
        f"{width} wide": {
            rows: times[width, rows][0] / times[width, rows][1] for rows in ROWS
        }
        for width in WIDTHS
    },
    caption=f"Twelve layers, eager against replay. {HERE}",
)

# %% [markdown]
"""
The same kernels, in the same number. With little work in each, a replay is several times as fast; with much work it
makes next to no difference. Both knobs do it: a wider model and a larger batch.

Look at what is *saved*, instead of the ratio:
"""

# %%
print("width rows   eager  replay   saved, ms")
for (width, rows), (eager, replay) in times.items():
    saved = eager - replay
    print(f"{width:5}{rows:5}{eager:8.2f}{replay:8.2f}{saved:8.2f}")
if kernels:
    eager, replay = times[32, 1]
    each = 1e3 * (eager - replay) / kernels
    print(f"{kernels} kernels, {each:.1f} µs saved for each")
    print("(32 wide, 1 row)")

# %% [markdown]
"""
At small sizes the saving hardly changes, while the times do. It is the host's share: the Python of the model, the
dispatcher, and memory that is asked for and given back. A replay leaves that out, however much or little the kernels
compute. (In the last rows the difference of two large times drowns in noise.) So:

**A graph saves a fixed amount for each kernel. How much that is worth depends on how long the kernels are.**

### A real model

SmolLM2 is 576 wide, has 30 layers and reads 135 million weights in every step. This was **measured** once, on a quiet
machine, with the fastest way to play the tape:
"""

# %%
smollm2 = viz.measured("replay")
for row in smollm2["smollm2"]:
    if row["threads"] == 1:
        eager, replay = row["ms"]["eager"], row["ms"]["native"]
        each = 1e3 * (eager - replay) / row["kernels"]
        print(f"batch {row['batch']}: {eager:.1f} -> {replay:.1f} ms,")
        print(f"  {eager / replay:.2f} times, {each:.0f} µs saved a kernel")
print(in_words(smollm2))

# %% [markdown]
"""
More is saved for each kernel than in the stack, as more Python and more views lie between two kernels of a real model.
It is still a smaller part of the step, because the kernels are long, and smaller again at batch 8. ([Chapter 10](10_a_graph_on_a_cpu.ipynb)
compares more sizes, and other ways to run them.)

## What a GPU changes

On this CPU, host and device are one processor, and their times add up. On a GPU they run side by side, and the slower
one sets the pace ([chapter 1](01_what_a_launch_costs.ipynb)). While the host is slower, a graph removes all of the
waiting; once the device is slower, there is nothing left to remove. The curve has a knee.

The package can lay the two lanes side by side for a GPU that you don't have. Kernels come from a model's shapes, their
times from the GPU's data sheet ([chapter 13](13_gpus_you_dont_have.ipynb) shows how, and how wrong that is). This is
Llama-3-8B on an H100 at batch 1, with a host that needs 30 µs for a launch. **Simulated:**
"""

# %%
from onelaunch.models.shapes import SHAPES
from onelaunch.timeline import HARDWARE, LaunchCosts
from onelaunch.timeline.sweeps import Setup, gains, padding

LLAMA_7B = SHAPES["meta-llama/Llama-2-7b-hf"]
LLAMA_8B = SHAPES["meta-llama/Meta-Llama-3-8B"]
LLAMA_70B = SHAPES["meta-llama/Meta-Llama-3-70B"]
CONTEXT = 1024  # tokens of each request


def host_at(us: float) -> LaunchCosts:
    """A host that needs so many microseconds to launch a kernel."""
    return LaunchCosts(launch_us=us)


on_h100 = Setup(LLAMA_8B, "H100", launch=host_at(30))
viz.step_lanes(
    [on_h100.step(1, CONTEXT, mode) for mode in ("eager", "graph")],
    caption="Llama-3-8B at batch 1 on an H100, 30 µs a launch. Simulated.",
)

# %% [markdown]
"""
The short kernels are done long before the next launch: that is where the device waits. Behind a long one, launches
queue up and the host gets ahead. As a graph, there is one launch, and the kernels follow each other closely.

### Which launch cost?

It is the number that decides most, and the one that is known least. It contains all that the host does for a kernel: a
program in C++ may need 3 or 4 µs, one eager addition through PyTorch took 8 µs on a host with an A100, and the eager
steps that people publish of engines written in Python fit 6 to 40 µs
([sources](../book/references.md); the fit is in [chapter 13](13_gpus_you_dont_have.ipynb)). `onelaunch bench` measures
yours. The same step with four hosts, **simulated**:
"""

# %%
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def speedup_curve(setup: Setup) -> dict[int, float]:
    """Batch -> how many times as fast a graph is. Simulated."""
    found = gains(setup, BATCHES, [CONTEXT])
    return {gain.batch: gain.speedup for gain in found}


viz.speedups(
    {
        f"{us} µs a launch": speedup_curve(
            Setup(LLAMA_8B, "H100", launch=host_at(us))
        )
        for us in (4, 20, 30, 40)
    },
    caption="Llama-3-8B on an H100, for four hosts. Simulated.",
)

# %% [markdown]
"""
With a quick host there is hardly anything to gain: this model's kernels are long enough to hide its launches. (What is
left are the gaps between kernels, which are shorter inside a graph.) With a slow one a graph saves a third of the step and more, up to the batch at which attention has so much to read that the
device is the slower side.

### Models and batches

There is a rule of thumb for how much graphs bring to decoding (from the inference notes that this book quotes): 1.40
to 1.60 times for 7 billion weights at batch 1, and for 70 billion 1.35 to 1.45 at batch 1, 1.20 to 1.30 at 8, 1.08 to
1.15 at 64, 1.02 to 1.06 at 256. As bars, behind what the simulation says:
"""

# %%
RULE_7B = {1: (1.40, 1.60)}
RULE_70B = {
    1: (1.35, 1.45),
    8: (1.20, 1.30),
    64: (1.08, 1.15),
    256: (1.02, 1.06),
}
SEVEN, SEVENTY = "7B, H100, 30 µs a launch", "70B, 8 H100, 12 µs a launch"
viz.speedups(
    {
        SEVEN: speedup_curve(Setup(LLAMA_7B, "H100", launch=host_at(30))),
        SEVENTY: speedup_curve(
            Setup(LLAMA_70B, "H100", launch=host_at(12), ranks=8)
        ),
        "7B, RTX 4090, 30 µs": speedup_curve(
            Setup(LLAMA_7B, "RTX 4090", launch=host_at(30), dtype="fp16")
        ),
    },
    {SEVEN: RULE_7B, SEVENTY: RULE_70B},
    caption="Curves: simulated. Bars: a published rule of thumb.",
)

# %% [markdown]
"""
The ends are the same: most at batch 1, next to nothing at 256. The way between is not. The rule falls steadily; the simulation
stays level and then falls, because it knows no variation: every launch costs the same, every request is as long as the
next. And the launch costs were *chosen* here so that the curves begin near the bars: read the figure for its shape. A
GPU with less bandwidth (the third curve) has longer kernels, and hardly needs a graph.

### Try it

Choose a model, a GPU, a batch and a host. Where does the device stop waiting?
"""

# %%
from onelaunch.timeline.fusion import fused_costs


def model(config, ranks: int = 1):
    """Batch -> the kernels of a step, for float16, which all these GPUs know."""
    return lambda batch: fused_costs(
        config, batch, CONTEXT, dtype="fp16", ranks=ranks
    )


explorer = viz.step_explorer(
    {
        "Llama-2-7B": model(LLAMA_7B),
        "Llama-3-8B": model(LLAMA_8B),
        "Llama-3-70B, one of 8 GPUs": model(LLAMA_70B, ranks=8),
    },
    list(HARDWARE),
    first={"model": "Llama-3-8B", "gpu": "H100", "launch_us": 30},
)
explorer

# %% [markdown]
"""
Three things to try. Move the batch up: the graph's step grows slowly at first, because the weights are read once for
all requests, and the eager one does not grow at all until the device is the slower side. Take a T4: its kernels are so
long that no host is too slow. Take the 70B model on eight GPUs: each of them has an eighth of the work in every
product and all of the launches, so graphs matter more, not less. (What the GPUs send each other is left out here.)

In a running notebook the same knobs are there as widgets:
"""

# %%
from IPython.display import display

if viz.in_live_notebook():
    display(explorer.widgets())

# %% [markdown]
"""
## Short kernels, long kernels

The knee has a reason that you can count. A kernel that is shorter than a launch leaves the device waiting; a longer
one lets the host get ahead. How many are there of each? **Simulated**, Llama-3-8B on an H100:
"""

# %% tags=["nbval-check-output"]
print("batch kernels under 30 µs: of the time")
for batch in (1, 16, 64, 256):
    device = on_h100.step(batch, CONTEXT, "graph").device
    short = [span.us for span in device if span.us < 30]
    share = sum(short) / sum(span.us for span in device)
    print(f"{batch:5}{len(device):8}{len(short):12}{share:13.0%}")

# %% [markdown]
"""
At every batch most *kernels* are short, and most of the *time* is in the few long ones: at batch 1 those are the two
products of the feed-forward part, which have the most weights to read, and at 64 attention has joined them. A product
reads all its weights, whether for one request or for sixty-four, so at first it takes no longer with a larger batch.
Attention does at once, since each request brings its own cache. The two limits, bytes and
arithmetic, make the [roofline](../book/glossary.md#roofline); [chapter 13](13_gpus_you_dont_have.ipynb) puts every
kernel of a step on it.

## A prefill gains nothing

To the layers above, a prefill of 200 tokens is a batch of 200 rows. So the experiment has been done already: move to
the right in the first figure. Once more, as a prompt that grows, **measured**:
"""

# %%
print("tokens   eager  replay, ms   times")
for tokens in (1, 16, 64, 256):
    step = make_step(96, tokens)
    graph, out = capture(step)
    eager, replay = shortest_ms(step, graph.replay)
    print(f"{tokens:6}{eager:8.2f}{replay:8.2f}{eager / replay:12.2f}")

# %% [markdown]
"""
And a real model on a GPU, **simulated**. The products of a prefill of `n` tokens are those of `n` rows. Attention
within the prompt is left out: it would make the device slower still, and the gain smaller.
"""

# %% tags=["nbval-check-output"]
print("tokens   eager   graph, ms   times")
for tokens in (1, 128, 512, 2048):
    (gain,) = gains(on_h100, [tokens], [1])
    eager, graph = gain.eager.step_us / 1e3, gain.graph.step_us / 1e3
    print(f"{tokens:6}{eager:8.2f}{graph:8.2f}{gain.speedup:12.2f}")

# %% [markdown]
"""
The rule of thumb says "about 1.00" as well. There is a second reason: a graph has one shape, and prompts have all
lengths. Recording some and padding to them computes rows for nobody ([chapter 8](08_padding.ipynb)), and there are many more
lengths of prompts than sizes of batches. What remains is *short* prefills, and pieces of long ones.

## When a capture has paid for itself

A capture costs time at the start: a warm-up, the recording, and on a GPU the instantiation. Divide that by what a replay
saves in a step: after so many steps it has paid, which is its [break-even](../book/glossary.md#break-even).

**Measured**, for two of the stacks and for SmolLM2:
"""

# %%
captures = {}
for width, rows in ((32, 1), (96, 16)):
    step = make_step(width, rows)
    start = time.perf_counter()
    graph, out = capture(step)
    seconds = time.perf_counter() - start
    eager, replay = shortest_ms(step, graph.replay)
    captures[f"{width} wide, batch {rows}"] = viz.Capture(
        seconds, eager - replay
    )
row = smollm2["smollm2"][0]
captures["SmolLM2, batch 1 (as above)"] = viz.Capture(
    row["capture_s"], row["ms"]["eager"] - row["ms"]["native"]
)
viz.break_even(
    {name: each for name, each in captures.items() if each.saved_ms > 0},
    caption=f"Dashed: what the capture took. Rising: what was saved. {HERE}",
)

# %% [markdown]
"""
A few hundred steps at most: a few sentences for one user. The models differ a lot and the points do not, because both
the capture's cost and the saving go by the number of kernels. (If a line is missing, its replay saved nothing this
time, and no number of steps would pay.)

On GPUs captures take longer. vLLM needed 10 to 15 s for Llama-3-8B (vllm-project/vllm#11005, #10460; **quoted**), and
for a model of that size a graph was reported to save 2.2 ms a step at batch 1 (9.28 to 7.06 ms,
sgl-project/sglang#1401). For 70 billion weights the inference notes say 20 to 60 s; the saving is **simulated**, with
the step of the figure above:
"""

# %%
big = Setup(LLAMA_70B, "H100", launch=host_at(12), ranks=8)
(gain,) = gains(big, [1], [CONTEXT])
saved_ms = (gain.eager.step_us - gain.graph.step_us) / 1e3
viz.break_even(
    {
        "8B, 12.5 s of capture": viz.Capture(12.5, 9.28 - 7.06),
        "70B, 20 s of capture": viz.Capture(20, saved_ms),
        "70B, 60 s of capture": viz.Capture(60, saved_ms),
    },
    caption="Capture times: quoted. Savings at batch 1: quoted for 8B, "
    "simulated for 70B.",
)

# %% [markdown]
"""
Thousands of steps: a minute or a few of decoding. For a server that runs for days it is nothing; for a test that asks
one question, a notebook, or a server that scales up and down by the minute, it may be more than the graphs ever bring.
That is why engines have a switch (`enforce_eager` in vLLM), and why there is work on keeping captures on disk: Foundry
reports 26.7 s of capture against 3.5 s of restoring, for 256 graphs of Qwen3-32B on H100s.

### Every size has to pay

Capture time is paid for each recorded size, and a size saves only when a batch of it comes. A long list with sizes that
never occur pays for nothing ([chapter 8](08_padding.ipynb)).

## What padding takes away again

37 requests run as 48 ([chapter 8](08_padding.ipynb)). Is the padded replay still worth it? **Measured**, on the stack:
37 rows eagerly, in a graph of 37, and in one of 48, with what that is on top:
"""

# %%
print("width  eager     37     48, ms")
for width in WIDTHS:
    exact_step, padded_step = make_step(width, 37), make_step(width, 48)
    exact_graph, exact_out = capture(exact_step)
    padded_graph, padded_out = capture(padded_step)
    eager, exact, padded = shortest_ms(
        exact_step, exact_graph.replay, padded_graph.replay
    )
    more = padded / exact - 1
    print(f"{width:5}{eager:7.2f}{exact:7.2f}{padded:7.2f} {more:+.0%}")

# %% [markdown]
"""
30% more rows cost less than 30%: what the kernels cost beside their rows is not repeated. But where kernels are long
there was little to win, and padding can eat all of it: then the graph of 48 is slower than 37 requests run eagerly.

On a GPU, the weights dominate and are read once. **Simulated**, Llama-3-8B on an H100 with 30 µs a launch, the dummies
one token long as in this book's engine, against a graph of exactly that size:
"""

# %% tags=["nbval-check-output"]
print("run as    eager exact padded, ms")
for batch, size in ((3, 4), (17, 24), (37, 48), (129, 256)):
    found = padding(on_h100, batch, size, CONTEXT)
    eager, exact, padded = (
        step.step_us / 1e3 for step in (found.eager, found.exact, found.padded)
    )
    print(f"{batch:3}{size:4}", end=" ")
    print(f"{eager:6.2f}{exact:6.2f}{padded:6.2f} {found.extra:+.1%}")

# %% [markdown]
"""
Padding is nearly free as long as reading the weights takes most of the time. The rule of thumb from chapter 8, extra rows times the share of the step that reads the cache, is for
dummies as long as real requests; these have one token, and cost less.

One published case has all three (vllm-project/vllm-ascend#16049, an NPU, batches of 12): exact graph 557 tokens/s,
padded to 16 500, eager 73.

## What a graph cannot speed up

**What the host does around it.** The engine of this book prepares a batch, copies it into the fixed buffers, replays,
and chooses tokens. Only one of the four is in the graph. **Measured**, on a model so small that the rest shows:
"""


# %%
def decode_ms(graph: str, batch: int = 8, steps: int = 60) -> dict[str, float]:
    """The shortest decode step of ``random:llama``, and the shortest replay."""
    with LLM(
        "random:llama",
        attention_backend="gather",
        graph=graph,
        cuda_graph_bs=[batch] if graph != "off" else None,
        max_running_req=batch,
        max_seq_len_override=128,
    ) as llm:
        params = SamplingParams(max_tokens=steps + 20, ignore_eos=True)
        for _ in range(batch):
            llm.submit("One launch", params)
        for _ in range(16):  # the prefill, and the first replays
            llm.step()
        best = float("inf")
        for _ in range(steps):
            start = time.perf_counter()
            llm.step()
            best = min(best, 1e3 * (time.perf_counter() - start))
        graphs = llm.engine.runner.graph_map
        alone = shortest_ms(graphs[batch].replay)[0] if graphs else 0.0
    return {"step": best, "replay": alone}


eager = decode_ms("off")
replayed = decode_ms("auto" if DEVICE == "cuda" else "tape")
outside = replayed["step"] - replayed["replay"]
print(f"a step, eager:            {eager['step']:6.2f} ms")
print(f"a step with its graph:    {replayed['step']:6.2f} ms")
print(f"  of which the replay:    {replayed['replay']:6.2f} ms")
print(f"  around it:              {outside:6.2f} ms")
print(f"speed-up of the step:     {eager['step'] / replayed['step']:6.2f}")
print(f"if a replay took no time: {eager['step'] / outside:6.2f}")

# %% [markdown]
"""
The last line is a ceiling that no graph can break: what is outside stays. It is Amdahl's law. On real engines the
outside is not small either: 227 µs for preparing a step at batch 1 were reported on an A40
(GeeeekExplorer/nano-vllm#176). Engines answer with less Python, or by preparing the next batch while the device still
computes this one.

**Kernels that are slow.** A graph runs the same kernels, each as long as before. Quantizing, a faster attention
kernel, fusing (which also makes the launches fewer): those change the kernels, and stay worth it with a graph.

**A device that is busy already.** Saturated with requests, Qwen2-7B on a 4090 made 5006 tokens/s without and 5029 with
graphs (sgl-project/sglang#2360).

**Reading the weights.** At batch 1 a step has to read every weight once. 16 GB at 3.35 TB/s are 4.8 ms on an H100, and
no launching trick makes that less. More requests in the batch do: they share the reading.

**It may even be slower.** A T5 decoder in TensorRT-LLM went from 77.8 to 100.6 ms with graphs on
(NVIDIA/TensorRT-LLM#3724). Padding, copies into fixed buffers, attention over the maximum length instead of the true
one: a graph brings costs of its own. Measure yours.

## Common mistakes

- **Timing without waiting.** `graph.replay()` returns at once. Without `torch.cuda.synchronize()` before the clock
  stops, every replay takes 5 µs and the speed-up is enormous.
- **Counting the capture, or the first replays.** Warm up both ways, then time them in turn.
- **One batch for all.** "1.5 times" is true at batch 1. Say at which batch, which length, which GPU and which host.
- **A tuned replay against an untuned eager step.** If fusing came with the graph (as in `torch.compile`), the gain is
  not the graph's. Compare the same kernels.
- **Timing an idle service.** With one user the step is launch-bound, with two hundred it is not. Take the batch sizes
  that you have ([chapter 8](08_padding.ipynb) counts them).
- **Multiplying.** 1.5 times from a graph and 1.5 times from a faster host are not 2.25: both remove the same waiting.

## How to explain it, in three sentences

A graph removes what the host does between kernels, which is a fixed amount for each of them. So it helps as long as
the kernels are shorter than their launches: small models, small batches, fast GPUs, slow hosts. A prefill or a large
batch keeps the device busy by itself, and gains nothing.

## Questions you may be asked

<details>
<summary>Would you expect more from a graph on an H200 than on a T4?</summary>

Yes. The H200's kernels are many times shorter and the host is the same, so the device waits more.

</details>

<details>
<summary>A model is spread over eight GPUs. Do graphs matter more or less?</summary>

More. Each product has an eighth of the work and there are as many launches, on every one of the eight.

</details>

<details>
<summary>Graphs gain 1.5 times at batch 1. The team wants to turn them off because the service runs at batch 100. Right?</summary>

Look at the histogram. If it really runs at 100 all day, they lose little. But the night, the end of a burst, and the
latency of the first user are at small batches, and there the gain is what the user feels.

</details>

<details>
<summary>How do you estimate the gain before you write any code?</summary>

Profile some decode steps. The share of time in which the device is idle between kernels is the most that a graph can
save. `onelaunch trace FILE` computes it.

</details>

<details>
<summary>What does doubling the context do to the gain?</summary>

It falls. Attention reads twice as much and takes longer, so the device waits less. Other kernels stay as they were.

</details>

## Summary

- A graph saves the host's time for each kernel. The more work a kernel has, the less that is.
- On a GPU there is a knee: where kernels get longer than launches, the gain ends.
- The host's cost of a launch decides most: 4 µs or 40 µs is the difference between nothing and half the step.
- Prefill and large batches gain nothing. Small batches, small models, fast or many GPUs gain most.
- On GPUs a capture pays after some thousand steps, padding costs little while weights dominate, and what the host does around
  the replay stays.

## Exercises

1. Find the width at which a replay of `make_step(width, 1)` saves less than 10%. Guess first, from the table.
2. In the explorer: for which batch does Llama-3-8B on a B200 stop being launch-bound with 10 µs a launch? And with 20?
3. How long may the capture of your list take, if your service restarts once a day and saves 1 ms in each of 50 steps a
   second?
4. Add `torch.compile` to `make_step` and compare four ways: eager, compiled, each with and without a graph. Which part
   of the gain is fusion?
5. Change `decode_ms` to batch 1 and 32. How does the ceiling move, and why?

## Further reading

- `src/onelaunch/timeline/simulate.py` and `sweeps.py`: the lanes and the sweeps of this chapter.
- NVIDIA, "Constant time launch for straight-line CUDA graphs", 2024: what launching a graph costs, by its nodes.
- Hazy Research, "No Bubbles", 2025: what is left to gain when even the gaps inside a graph are removed.
- The [references](../book/references.md) for the figures and reports quoted here.
"""
