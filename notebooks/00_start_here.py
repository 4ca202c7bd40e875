# %% [markdown]
"""
# Start here

**Who this is for.** You serve language models and want to know why a CUDA Graph makes decoding faster, and how it
goes wrong. Or you study them and have no GPU. Both will do: everything here runs on a laptop.

**After this chapter** you have run the engine of this book, seen it write text, and picked the way you want to read
on.

*About 10 minutes. Easy. You need Python, and to have heard of tokens; no GPU.*
"""

# %% [markdown]
"""
## Run the engine first

The next cell loads a language model and lets it write. The model is SmolLM2-135M-Instruct: 135 million weights, small
enough for a laptop, large enough to write sentences. The first time, it is fetched and converted, which takes a
minute; after that it starts in seconds.
"""

# %%
from onelaunch import LLM, SamplingParams

llm = LLM("smollm2-135m")
llm

# %% tags=["nbval-check-output"]
prompts = ["The capital of France is", "Water boils at", "1, 2, 3, 4, 5,"]
answers = llm.generate(prompts, SamplingParams(max_tokens=8))
for prompt, answer in zip(prompts, answers, strict=True):
    print(f"{prompt!r} -> {answer['text']!r}")

# %% [markdown]
"""
That was real text from a real model, computed on the machine you are on. The three prompts were answered together, as
a server would: one batch, one step for all three, again and again.

Now watch it write. A language model makes one [**token**](../book/glossary.md#token) (a word or a piece of one) per
step, and needs every token it has made before it can make the next. So the text comes piece by piece, and the time
from one piece to the next is the time of one **decode step**.
"""

# %%
opening = "Once upon a time, a lighthouse keeper"
print(opening, end="")
for piece in llm.stream(opening, SamplingParams(max_tokens=60)):
    print(piece.text, end="", flush=True)

# %% [markdown]
"""
How long is one step here? The next cell times twenty of them. On the page you see the time of the machine that built
it; yours will differ, so run it.
"""

# %%
import itertools
import statistics
import time

times = []
params = SamplingParams(max_tokens=21, ignore_eos=True)
for _ in llm.stream("One, two, three,", params):
    times.append(time.perf_counter())
steps = [after - before for before, after in itertools.pairwise(times)]
print(f"{1e3 * statistics.median(steps):.1f} ms a step on {llm.device}")

# %% [markdown]
"""
## Why this book exists

On a CPU, most of that time is spent computing. On a GPU it need not be, and that is the subject of this book.

A GPU computes one operation of this model in a few millionths of a second. But it does not start on its own: the
**host** (the CPU, running Python) has to [**launch**](../book/glossary.md#launch) every operation, and a launch costs
a few millionths of a second as well. A decode step has hundreds of operations. At small batch the GPU is done with
each before the host has launched the next, so the fast machine waits for the slow one.

A [**CUDA Graph**](../book/glossary.md#cuda-graph) removes the wait. You record the step once, with all its launches,
and from then on a single launch replays the recording. Published rules of thumb put the gain at 1.35 to 1.45 times
for a model of 70 billion weights at batch 1, and 1.40 to 1.60 for one of 7 billion
([sources](../book/references.md)).

The price is that a recording is rigid. Every address it reads and writes is fixed. So before each replay, every input
has to be copied to the place where the recording expects it, batches have to be padded to a size that was recorded,
and **if you forget one copy, the text is wrong and nothing raises an error**. You can see that happen here, without a
GPU. It takes one line: every token knows its place in the text (its *position*), and we "forget" to hand the
positions over.
"""

# %% tags=["nbval-check-output"]
from onelaunch.engine.core import Batch

engine = llm.engine
prepare_batch = engine.prepare_batch


def prepare_and_forget(batch: Batch) -> None:
    """The mistake: in a decode step the positions keep an old value, here 0."""
    prepare_batch(batch)
    if batch.is_decode:
        batch.positions.zero_()


params = SamplingParams(max_tokens=12)
(right,) = llm.generate("The capital of France is", params)
engine.prepare_batch = prepare_and_forget
(wrong,) = llm.generate("The capital of France is", params)
engine.prepare_batch = prepare_batch

print("right:", repr(right["text"]))
print("wrong:", repr(wrong["text"]))

# %% [markdown]
"""
No exception, no warning, and it even begins right: the first token comes from the prefill, which was not touched.
This is the kind of fault the later chapters teach you to find by name.

## What can this machine do?

`onelaunch doctor` prints what is here, what is missing, and what will be skipped because of it. In a terminal it is a
command; here it is a function.
"""

# %%
from onelaunch import doctor

doctor.main()

# %% [markdown]
"""
## Three ways to read on

| You have | Do this |
|---|---|
| only a browser | Read the pages. Every figure and result was produced by the cell above it. |
| a laptop with Python | Clone the repository and run `make book`, or open the notebooks in Jupyter. A CPU is enough. |
| a Google account | Open a chapter in Colab (link at its top), with a GPU. Its first cell installs the engine. |

Read the chapters in order the first time: 1 counts what a step launches, 2 builds the engine that the rest of the
book records.

## Common mistakes

- **Timing the first run.** The first start fetches and converts the model, the first step touches memory for the
  first time. Time the later ones.
- **Comparing tokens per second across batch sizes.** A batch of 8 makes 8 tokens a step. Compare milliseconds per
  step, and say the batch.
- **Believing a text because it reads well.** The wrong text above is fluent. Only a comparison with a run that is
  known to be right tells.

## How to explain it, in three sentences

A decode step is hundreds of small operations, and the host takes about as long to launch one as the GPU takes to
compute it. A CUDA Graph records the step once and replays it with a single launch. In exchange all addresses are
frozen, so inputs must be copied into fixed places before each replay, and a forgotten copy gives wrong text without
an error.

## Questions you may be asked

<details>
<summary>Why does generating text take one step per token, when reading the prompt takes only one in all?</summary>

All tokens of the prompt are known, so one step can compute them side by side. A new token depends on the one before
it, which does not exist until the step before has ended.

</details>

<details>
<summary>Does a CUDA Graph make the kernels themselves faster?</summary>

No. The same kernels compute the same numbers. What goes away is the host's work between them, so a step that was
never waiting for the host gains next to nothing.

</details>

<details>
<summary>Why is a forgotten copy silent?</summary>

The recording reads a fixed address. There is always something at that address: the value of an earlier step. It has
the right shape and type, so nothing can object.

</details>

## Summary

- The engine of this book runs on this machine, and writes real text.
- Decoding is one step per token, and a step is what a CUDA Graph records.
- The danger of graphs is not the crash, it is the silent wrong answer.

## Further reading

- The [glossary](../book/glossary.md) has every term of this book in a sentence or two.
- The [references](../book/references.md) say where each quoted figure comes from.
- NVIDIA's blog post "Getting started with CUDA Graphs" is the classic introduction, for CUDA C++.
"""

# %%
llm.shutdown()
