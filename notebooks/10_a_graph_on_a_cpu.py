# %% [markdown]
"""
# A graph on a CPU

**Who this is for.** You have read chapters of a book about GPUs that ran on a CPU, and want to know how far to believe
them.

**After this chapter** you can build the simplest emulation of a graph in ten lines, say what it misses and what a tape
shows, run one fault on both, and name what neither of them can show.

*About 40 minutes. Medium. You need [chapter 3](03_first_capture.ipynb) for what a capture is, and
[chapter 9](09_graph_runner.ipynb) for the engine's graphs; no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. An emulation of a replay calls the Python function again. Which two kinds of fault does it show, and which never?
2. A tape replays kernels without Python. Why can it show a frozen branch?
3. An output of one graph is read after the replay of another that shares its pool. On which emulation is it wrong?
4. Name three faults on a GPU that no emulation on a CPU can show.

**Answers.** 1: stale inputs and padding that leaks; nothing that has to do with the recording: frozen values and
branches, refused operations, reused memory. 2: the branch was taken once, while it was recorded, and there is no `if`
on the tape. 3: on the tape. 4: races between host and device, overlap of kernels, memory that a graph itself needs,
other threads breaking a capture, what collectives do; any three.

</details>
"""

# %%
import torch

from onelaunch import LLM, SamplingParams, cuda, viz

DEVICE = "cpu" if cuda.is_emulated else "cuda"

# %% [markdown]
"""
## The simplest emulation

What does a replay look like from outside? It reads fixed buffers and writes fixed buffers. So here is a graph in ten
lines, for any machine: keep the step, and run it again.
"""


# %%
class Rerun:
    """A graph that is none: each replay runs the step again."""

    def __init__(self, step) -> None:
        self.step = step

    def replay(self) -> None:
        self.step()


def record_rerun(step) -> Rerun:
    step()  # the warm-up
    return Rerun(step)


# %% [markdown]
"""
The engine has it too (`graph="rerun"`, class `EmulatedGraph`). It looks like a joke, and it is useful: with the real
fixed buffers around it, it is wrong whenever somebody forgets to fill one. [Chapter 9](09_graph_runner.ipynb) used it
for that, and so can you in a test that has to run without a GPU.

The other way is the one that `torch.cuda` has. On a GPU this records a real graph, elsewhere a
[tape](../book/glossary.md#tape):
"""


# %%
def record_graph(step) -> cuda.CUDAGraph:
    stream = cuda.Stream()
    stream.wait_stream(cuda.current_stream())
    with cuda.stream(stream):
        step()  # the warm-up
    cuda.current_stream().wait_stream(stream)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        step()
    return graph


GRAPH = "tape" if cuda.is_emulated else "GPU"
WAYS = {"rerun": record_rerun, GRAPH: record_graph}

# %% [markdown]
"""
## One fault that both show

A step doubles `x`. We record it, bring a new `x` and forget to copy it. Then we compare with the step run eagerly on
the new value:
"""


# %% tags=["nbval-check-output"]
def right_or_wrong(found: torch.Tensor, expected: float) -> str:
    cuda.synchronize()
    return "right" if found.flatten()[0].item() == expected else "wrong"


def number(value: float) -> torch.Tensor:
    return torch.tensor([value], device=DEVICE)


def forgotten_copy(record) -> str:
    x, out = number(1.0), number(0.0)
    graph = record(lambda: out.copy_(x * 2))
    new = number(5.0)  # and nobody copies it into x
    graph.replay()
    return right_or_wrong(out, 2 * new.item())


for name, record in WAYS.items():
    print(name, forgotten_copy(record))

# %% [markdown]
"""
Good: a bug that both find. This is what the simple emulation is for.

## One fault that only the tape shows

Now a step that multiplies by a number which Python holds. Guess both lines:
"""


# %% tags=["nbval-check-output"]
class Settings:
    scale = 2.0


def frozen_number(record) -> str:
    x, out, settings = number(1.0), number(0.0), Settings()
    graph = record(lambda: out.copy_(x * settings.scale))
    settings.scale = 3.0
    graph.replay()
    return right_or_wrong(out, 3.0)


for name, record in WAYS.items():
    print(name, frozen_number(record))

# %% [markdown]
"""
The rerun says that all is well. It reads `settings.scale` anew, because it runs Python. A graph does not. **An
emulation that is too kind is worse than none**: the test is green and the service is wrong.

### The same in the engine

To see that this is no toy, here is a fault of the public kind (huggingface/transformers#45323): a backend that hands
its kernel the length of the longest request in the batch, as a Python number. It is not read from the device, so
nothing is refused; the engine knows it anyway.
"""


# %%
from onelaunch.attention import BACKENDS, GatherBackend


class Bounded(GatherBackend):
    """Attends to the first ``longest`` tokens, where longest is the longest request of the step."""

    longest = 1

    def prepare_metadata(self, batch) -> None:
        super().prepare_metadata(batch)
        self.longest = max(req.device_len for req in batch.padded_reqs)

    def _locate(self, metadata) -> None:
        super()._locate(metadata)
        within = self._position < self.longest  # a number of Python's
        metadata.mask = metadata.mask & within


BACKENDS["bounded"] = Bounded
ENGINE_GRAPHS = {"rerun": "rerun", GRAPH: "auto"}
engines = {
    name: LLM(
        "smollm2-135m",
        attention_backend="bounded",
        graph=choice,
        cuda_graph_bs=[4],
        max_running_req=4,
        max_seq_len_override=64,
    )
    for name, choice in ENGINE_GRAPHS.items()
}

# %% tags=["nbval-check-output"]
prompts = ["My favourite animal is", "The sun rises in the", "A triangle has"]
params = SamplingParams(max_tokens=8, ignore_eos=True)
with LLM("smollm2-135m", max_seq_len_override=64) as eager:
    expected = eager.generate(prompts, params)
for name, llm in engines.items():
    answers = llm.generate(prompts, params)
    for right, found in zip(expected, answers, strict=True):
        same = right["token_ids"] == found["token_ids"]
        print(f"{name:6} right: {same!s:6} {found['text']!r}")

# %% [markdown]
"""
With the rerun, three right texts. On the tape, nonsense from the second token on. And the tape can be asked what it
froze, and where. Here are the comparisons with a plain number:
"""

# %% tags=["nbval-check-output"]
if cuda.is_emulated:
    tape = engines[GRAPH].engine.runner.graph_map[4].tape
    for frozen in tape.frozen():
        if frozen.op == "aten::lt.Scalar":
            where = frozen.where.function
            print(f"{frozen.op}, {frozen.name} = {frozen.value}, in {where}")

# %% [markdown]
"""
There it is: a comparison with 1, the length of the dummy that was recorded. The cure is chapter 7's: a tensor in a
fixed buffer, or the largest possible number.

## A museum of small faults, on both

Now many at once. Each function below records a step, does something that would be fine without a graph, replays, and
says whether the result is what eager code would give. The first is a control, without any fault.
"""


# %%
def no_fault(record) -> str:
    x, out = number(1.0), number(0.0)
    graph = record(lambda: out.copy_(x * 2))
    x.copy_(number(5.0))
    graph.replay()
    return right_or_wrong(out, 10.0)


def new_tensor(record) -> str:
    """The input is replaced by another tensor of the same name."""
    state = {"x": number(1.0)}
    out = number(0.0)
    graph = record(lambda: out.copy_(state["x"] * 2))
    kept = state["x"]  # its memory stays as it is
    state["x"] = number(5.0)
    graph.replay()
    del kept
    return right_or_wrong(out, 10.0)


def frozen_branch(record) -> str:
    x, out, settings = number(1.0), number(0.0), {"negate": False}
    graph = record(lambda: out.copy_(-x if settings["negate"] else x))
    settings["negate"] = True
    graph.replay()
    return right_or_wrong(out, -1.0)


def question_to_the_device(record) -> str:
    x, out = number(1.0), number(0.0)
    graph = record(lambda: out.copy_(x if x.item() > 0 else -x))
    x.copy_(number(-5.0))
    graph.replay()
    return right_or_wrong(out, 5.0)


def host_data(record) -> str:
    """A tensor made from a list, in the step."""
    x, out, table = number(1.0), number(0.0), [2.0]
    graph = record(lambda: out.copy_(x * torch.tensor(table).to(x.device)))
    table[0] = 5.0
    graph.replay()
    return right_or_wrong(out, 5.0)


def size_from_data(record) -> str:
    """How many are positive decides a shape."""
    x = torch.tensor([1.0, -1.0, 2.0], device=DEVICE)
    out = number(0.0)
    graph = record(lambda: out.copy_(x[x > 0].sum()[None]))
    x.copy_(torch.tensor([1.0, 1.0, 3.0]))
    graph.replay()
    return right_or_wrong(out, 5.0)


def kept_output(record) -> str:
    """The result of a replay is read after the next one."""
    x, results = number(1.0), {}
    graph = record(lambda: results.update(y=x * 2))
    x.copy_(number(5.0))
    graph.replay()
    first = results["y"]
    x.copy_(number(7.0))
    graph.replay()
    return right_or_wrong(first, 10.0)


def python_counter(record) -> str:
    """The step counts how often it ran, in Python."""
    x, out, ran = number(1.0), number(0.0), []

    def step() -> None:
        ran.append(1)
        out.copy_(x * 2)

    graph = record(step)
    before = len(ran)
    for _ in range(3):
        graph.replay()
    return "right" if len(ran) - before == 3 else "wrong"


def unknown_generator(record) -> str:
    """Random numbers from a generator that the graph was not told of."""
    generator = torch.Generator(DEVICE).manual_seed(0)
    out = number(0.0)
    graph = record(lambda: out.normal_(generator=generator))
    drawn = []
    for _ in range(2):
        graph.replay()
        drawn.append(out.item())
    return "right" if drawn[0] != drawn[1] else "wrong"


def lost_side_stream(record) -> str:
    """Work on a second stream that nobody waits for."""
    x, out, side = number(1.0), number(0.0), cuda.Stream()

    def step() -> None:
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            out.copy_(x * 2)

    graph = record(step)
    x.copy_(number(5.0))
    graph.replay()
    return right_or_wrong(out, 10.0)


# %% [markdown]
"""
Before you run them: how many of these does the rerun call right?
"""

# %% tags=["nbval-check-output"]
FAULTS = (
    no_fault,
    forgotten_copy,
    new_tensor,
    frozen_number,
    frozen_branch,
    kept_output,
    python_counter,
    question_to_the_device,
    host_data,
    size_from_data,
    unknown_generator,
    lost_side_stream,
)


def outcome(fault, record) -> str:
    try:
        return fault(record)
    except RuntimeError:
        return "refused"


table = {}
for fault in FAULTS:
    name = fault.__name__.replace("_", " ")
    table[name] = {way: outcome(fault, how) for way, how in WAYS.items()}
for way in WAYS:
    found = sum(row[way] != "right" for row in table.values())
    print(f"{way}: {found} of {len(FAULTS) - 1} faults show")

# %%
viz.outcomes(
    table,
    caption="Each row is a fault, except the first. What eager code would give "
    "is 'right'. A rerun calls right what a graph makes wrong or refuses.",
)

# %% [markdown]
"""
The rerun shows what is wrong with the *buffers*. The tape shows that, and what is wrong with the *recording*. Look at
the words: what is wrong on the tape raises nothing. What is refused comes with the name of the tensor, your line, the
reason and the cure ([chapter 4](04_what_a_capture_refuses.ipynb)).

Why the difference? Here is what runs at a replay:

| | eager | rerun | tape | graph on a GPU |
|---|---|---|---|---|
| the model's Python | runs | runs | - | - |
| PyTorch's way to a kernel | runs | runs | - | - |
| the kernels | run | run | run | run |
| their inputs | this step's tensors | fixed buffers | recorded addresses | recorded addresses |
| their numbers | this step's | this step's | frozen | frozen |
| memory of the results | new each time | new each time | the graph's pool | the graph's pool |

The tape and the GPU agree in every line. So nobody had to build in what comes out *wrong*: the tape holds the kernels
with their addresses and their numbers, and the wrong answers follow. What is *refused*, on the other hand, is a table
of rules, taken from PyTorch's source, since a CPU would run all of it without complaint.

## How faithful is the tape?

First the plain question: does a replay compute what eager computes, to the last bit? One decode step of the real
model, recorded, then replayed on the next tokens:
"""

# %% tags=["nbval-check-output"]
from onelaunch.engine.core import Batch

llm = LLM("smollm2-135m", attention_backend="gather", max_seq_len_override=64)
engine, context = llm.engine, llm.engine.context
handle = llm.submit("The capital of France is", params)
llm.step()  # the prefill
batch = Batch([handle.req], "decode")


def logits_of_step() -> torch.Tensor:
    with torch.inference_mode(), context.forward_batch(batch):
        return engine.model(batch.input_ids, batch.positions, context)


results = {}
with torch.inference_mode():
    engine.prepare_batch(batch)
    graph = record_graph(lambda: results.update(logits=logits_of_step()))
    replayed = results["logits"]
    for token in (5, 500, 5000):
        batch.input_ids.fill_(token)
        graph.replay()
        equal = torch.equal(replayed, logits_of_step())
        print(f"token {token}: {replayed.numel()} logits, equal: {equal}")
llm.shutdown()

# %% [markdown]
"""
### Every operator of PyTorch

That was one model, and ours. A tool is not tested by its author's examples. PyTorch tests its operators with a database
of its own: several hundred operators, and what each may be called with. `benchmarks/operator_database.py` captures
each of them with one sample, replays it with the values of another, and compares with eager, bit by bit:
"""

# %%
operators = viz.measured("operators")
viz.operators(operators)

# %% [markdown]
"""
What is refused is refused by a rule of [chapter 4](04_what_a_capture_refuses.ipynb). Which operator, by which rule and
why is on [a page of its own](../book/operators.md).

### Other people's models

Operators alone are no model. So the next trial takes every causal language model of Hugging Face's transformers, made
small: its decode step with a static cache is recorded, replayed for several steps, and compared with eager, bit by bit,
logits and cache. `benchmarks/transformers_models.py` runs it; here is what it saved:
"""

# %%
models = viz.measured("transformers_models")
viz.transformers_models(models)

# %% [markdown]
"""
The two groups are two ways to run the same models. Above, the host makes attention masks and positions and copies
them into fixed buffers, as `generate` does it. Below, the step makes its masks itself, inside of the graph. Look at
the bar "different" of the second group. These models are captured without a word and then compute something else:
"""

# %%
frozen_masks = sorted(
    name
    for name, row in models["rows"].items()
    if row["outcome"] == "bitwise"
    and row.get("alone", row)["outcome"] == "different"
)
print(len(frozen_masks), "models:", ", ".join(frozen_masks[:12]), "...")

# %% [markdown]
"""
They have attention with a sliding window, and the static cache counts their tokens *in a Python number*. A mask made
from it in the step has the number frozen: `frozen_number` of the museum, in a library that many use. A rerun runs
Python, so the count goes on, and it has nothing to report. Every model, with the line that gets in its way, is on [a
page of its own](../book/transformers_models.md).

Bear in mind what is shown: that the tape replays what eager computes on a CPU, and refuses with a reason that can be
looked up. Not shown: that a GPU would do the same. It runs other kernels for some of these layers.

## How fast is it?

A replay on the tape leaves out Python and most of PyTorch's way to a kernel. So it is faster than eager where those
are what the time goes to: for small models. This is the same effect as on a GPU, for the same reason, and it is **no
prediction for a GPU**. A tiny random model, on the machine that runs this page:
"""

# %%
import statistics
import time


def step_ms(choice: str) -> float:
    """Median time of a decode step of eight requests."""
    with LLM(
        "random:llama",
        attention_backend="gather",
        graph=choice,
        cuda_graph_bs=[8],
        max_running_req=8,
        max_seq_len_override=128,
    ) as small:
        long = SamplingParams(max_tokens=100, ignore_eos=True)
        for _ in range(8):
            small.submit([1, 2, 3], long)
        small.step()  # the prefill
        times, start = [], time.perf_counter()
        while small.step() is not None:
            cuda.synchronize()
            now = time.perf_counter()
            times.append(now - start)
            start = now
    return 1e3 * statistics.median(times)


choices = {"eager": "off", **ENGINE_GRAPHS}
viz.bars(
    {"": {name: step_ms(choice) for name, choice in choices.items()}},
    "time of a decode step",
    "ms",
)

# %% [markdown]
"""
The rerun takes as long as eager, or longer: it does the same and copies first.

Who issues the kernels of a tape? There are three executors, and all of them make the same calls: one in Python, one
that PyTorch's own TorchScript interpreter runs without Python, and one in C++ for machines with a compiler
(`onelaunch compile` builds it, once). The engine tries those that are there in the first replays and stays with the
fastest. Ask which one that is, or name one with the environment variable `ONELAUNCH_EXECUTOR`:
"""

# %%
if cuda.is_emulated:
    print("played by:", engines[GRAPH].engine.runner.graph_map[4].executor)

# %% [markdown]
"""
How far do they get? `benchmarks/replay.py` takes a decode step of 28 layers in plain PyTorch and runs it in every way
that PyTorch knows, in turn. Before you look: which bars shrink when the model grows?
"""

# %%
replay = viz.measured("replay")
viz.replay_speeds(replay)

# %% [markdown]
"""
All of them. A wide model's kernels take long, and then it does not matter who issues them. **That is the whole story
of launch-bound and compute-bound**, told by a CPU.

Three more things to see:

- The same list of kernels runs at different speeds, and the difference is nothing but what lies between two kernels:
  Python, a TorchScript interpreter, a loop in C++.
- No bar of a tape can pass the limit, which is the time of the kernels alone. A graph on a GPU has such a limit too:
  it launches the kernels that you wrote.
- `torch.compile` makes fewer kernels out of many, so this limit is not its own. Whatever it gains, it is not bitwise
  equal to eager: fused sums round in another order. Engines that need both compile first and capture then.

And the real model of this book, whose kernels are long enough that a CPU gains little?
"""

# %%
for row in replay["smollm2"]:
    times = row["ms"]
    best = min(times[way] for way in ("python", "script", "native"))
    print(
        f"SmolLM2, batch {row['batch']}, threads {row['threads']}:",
        f"{times['eager'] / best:.2f} times as fast as eager",
    )

# %% [markdown]
"""
On a GPU it is the small model again: the kernels take microseconds each, and so does the host to launch one.

## What neither can show

A CPU does one thing after the other. Whatever follows from two processors working at once is not here:

- **Races.** On a GPU, host and device run at the same time. A host that changes a pinned buffer while it is being
  copied, an output read before the replay is done: neither happens on a CPU.
- **Overlap.** Kernels from several captured streams may run side by side. Here they run one by one.
- **Other threads.** A capture on a GPU can be broken by another thread's call (`capture_error_mode`;
  vllm-project/vllm#48053).
- **Memory of the graph itself**, its instantiation and upload, and what they cost.
- **Which kernel** a library picks, and the workspace that it needs.
- **Memory that was really freed.** The tape keeps what it reads alive. On a GPU a freed address may belong to somebody
  else by now.
- **Collectives** (NCCL), and changing the parameters of an instantiated graph.
- **Kernels that bypass PyTorch's dispatcher**, such as a Triton kernel that is launched by hand.

Two things are missing on the tape alone. While something listens to the operators, as the tape does,
`nn.TransformerEncoderLayer` leaves its fused kernel aside: its replay is close to eager and not bitwise equal. And
operators that take functions, such as `torch.cond`, are refused as not emulated.

And one thing in general: no line of this book was run on a GPU by its authors so far. What the tape refuses follows
PyTorch's source and CUDA's documentation.

## Common mistakes

- **Testing graphs with a rerun and calling it done.** It tests the buffers. Say so in the test's name.
- **Testing only that a replay equals the capture.** Replay with *other* values, other lengths, another batch size in
  the same graph; most faults are invisible on the values that were recorded.
- **Timing an emulation.** The tape's speed says nothing about a GPU's.
- **Believing that what the tape lets through is safe.** It shows many faults, not the ones listed above.
- **Forgetting the warm-up in the emulation** because it works without. What happens only the first time is then
  recorded, on the tape as on a GPU:
"""


# %% tags=["nbval-check-output"]
def first_time(warm_up: bool) -> str:
    """A step that makes a table when it first runs. Is the table still good without the graph?"""
    x, made = number(2.0), {}

    def step() -> torch.Tensor:
        if "table" not in made:
            made["table"] = torch.ones(1, device=DEVICE) * 3
        return x * made["table"]

    if warm_up:
        step()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        step()
    return right_or_wrong(step(), 6.0)  # eager, before any replay


print("with warm-up:   ", first_time(True))
print("without warm-up:", first_time(False))

# %% [markdown]
"""
## How to explain it, in three sentences

The simplest emulation of a graph runs the step again on the real fixed buffers; it finds every stale input, and calls
everything else right. A tape records the kernels with their addresses and frozen numbers and replays them without
Python, so what is wrong or refused on a GPU because of the recording is wrong or refused here. What comes from host
and device running at once, and from the memory and the libraries of a real GPU, can only be seen on one.

## Questions you may be asked

<details>
<summary>You have no GPU in CI. How would you test an engine's graph code?</summary>

In layers. Fixed buffers and padding with a rerun: any model, any backend. The recording with a tape: replay against
eager on other values, bit for bit, and a list of operations that must be refused. What is left (races, collectives,
memory) runs nightly on a GPU.

</details>

<details>
<summary>Why does the tape show overwritten outputs without being told to look for them?</summary>

Because results lie at recorded addresses in a pool, and the next replay writes to the same addresses. It is not a
check, it is what happens.

</details>

<details>
<summary>How can a CPU "record without running", when its operations run at once?</summary>

It cannot. The operations run while they are recorded, on the side: what the step wrote to memory outside of the
graph's pool is put back at the end of the capture, and the outputs are filled with garbage. From outside it looks as
if nothing had run.

</details>

<details>
<summary>A rerun uses the batch object of the capture. What follows?</summary>

Whatever the step reads from that object as Python values (its size, its requests) stays that of the dummy batch, as in
a graph. Whatever it reads from elsewhere is new. So a rerun shows *some* frozen values, by accident; do not count on
it.

</details>

<details>
<summary>Is equality bit for bit not too strict a test?</summary>

For a replay against eager, no: the same kernels on the same numbers. Where it fails, something else differs, such as
the memory layout or the library's choice of algorithm, and you want to know.

</details>

## Summary

- A rerun is ten lines and tests the buffers.
- A tape tests the recording as well: addresses, frozen numbers and branches, refused operations, reused memory.
- Both need other values than those of the capture.
- Races, overlap, collectives, real memory: only on a GPU.

## Exercises

[Exercise 8, A toy tape](../exercises/ex08_a_toy_tape.ipynb), judges what you write, in its page or in a notebook: both
emulations, for a device of forty lines. And without a judge:

1. Add a fault to the museum: a step that writes its result into a list of the host (`.tolist()`). What do both say?
2. Make `kept_output` right on the tape with one word.
3. Improve `Rerun` so that it shows `kept_output`: it may copy results into buffers of its own.
4. Teach `Rerun` to find `frozen_number`. How far do you get before you have written a tape?

## Further reading

- `src/onelaunch/tape/`: the tape, in small files. Begin with `tape.py`.
- `src/onelaunch/engine/capture.py`: both ways side by side, and how the engine picks one.
- PyTorch's documentation of `torch.cuda.CUDAGraph` and `torch.cuda.graph`: the API that is emulated.
- The [references](../book/references.md) for the reports quoted here.
"""

# %%
for llm in engines.values():
    llm.shutdown()
