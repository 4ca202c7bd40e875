# %% [markdown]
"""
# Padding

**Who this is for.** You know that a graph has one batch size and that a server's batches have many, and want to know
which sizes to record.

**After this chapter** you can say what an engine does with a batch that was not recorded, where five real engines
differ, what padding wastes on given traffic, and find the list of sizes that wastes least.

*About 45 minutes. Medium. You need [chapter 6](06_fixed_buffers.ipynb) for why every row has to be filled; no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. Graphs exist for 32, 48 and 64. What happens to 37 requests, and what is the waste?
2. What does a padded row compute, and where does it write?
3. A list is "1, 2, 4, then every 8", the ceiling 20. Which batches find no graph?
4. Two lists have 20 graphs each. How do you tell which is better?

**Answers.** 1: they run as 48; 11 rows are for nobody, 30% on top. 2: a whole row of the step, for the dummy request;
its key goes to a page that nobody reads. 3: 17 to 20, unless the engine adds the ceiling. 4: count how often each
batch size occurs in your service, and add up the padded rows of each list.

</details>
"""

# %%
import warnings

from onelaunch import LLM, SamplingParams, viz
from onelaunch.padding import (
    best_sizes,
    capture_sizes,
    memory_bytes,
    mini_sglang,
    nano_vllm,
    padded_size,
    sglang,
    tensorrt_llm,
    vllm,
    waste,
    waste_of,
)

# %% [markdown]
"""
## A batch that was not recorded

Three requests arrive, and there are graphs for one, two and four. Three do not fit into two. So they run as four:
"""

# %%
llm = LLM(
    "smollm2-135m",
    cuda_graph_bs=[1, 2, 4],
    max_running_req=4,
    max_seq_len_override=128,
)
engine, runner = llm.engine, llm.engine.runner

# %% tags=["nbval-check-output"]
prompts = ["My favourite animal is", "The sun rises in the", "A triangle has"]
params = SamplingParams(max_tokens=8, ignore_eos=True)
expected = llm.generate(prompts, params)
print("(requests, rows): steps", dict(runner.stats.steps))
print("rows computed for nobody:", runner.stats.padded_rows)

# %% [markdown]
"""
The fourth row is a [**dummy request**](../book/glossary.md#dummy-request). It is computed like any other, layer by
layer, and thrown away at the end. Two questions follow: how can it do no harm, and how much does it cost?

## The dummy and its page

A row cannot be told to do nothing; the kernels are recorded. The dummy's row stores a key and a value like all rows.
It has a page of its own for that, which the engine never hands out:
"""

# %% tags=["nbval-check-output"]
dummy, cache = engine.dummy_req, engine.context.kv_cache
print("pages that requests can get: 0 to", llm.num_pages - 1)
print("the dummy's page:", dummy.pages[0])
print("its token and length:", dummy.input_ids, dummy.device_len)

# %% [markdown]
"""
Fill that page with the worst there is, and the texts must not change. Then do it wrong: give the dummy a page that
belongs to a request.
"""

# %% tags=["nbval-check-output"]
cache.k_cache[:, dummy.pages[0]] = float("nan")
cache.v_cache[:, dummy.pages[0]] = float("nan")
print(
    "NaN in its page, texts right:", llm.generate(prompts, params) == expected
)


handles = [llm.submit(prompt, params) for prompt in prompts]
llm.step()  # the prefill
own_pages = dummy.pages
dummy.pages = handles[0].req.pages[:1]  # the mistake
while llm.step() is not None:
    pass
dummy.pages = own_pages
for right, handle in zip(expected, handles, strict=True):
    print(handle.text == right["text"], repr(handle.text))

# %% [markdown]
"""
The first text is wrong: its first token's key was overwritten at every step. The others never look there. What engines do against it:

| engine | where dummies write |
|---|---|
| mini-sglang, and this book | an extra page of the KV cache, with an extra row of the page table |
| SGLang | slot 0, which is never handed out |
| vLLM | block 0, the "null block" |
| nano-vllm | nowhere: their slot is -1, and its store kernel skips that |
| TensorRT-LLM | a page taken from the pool; if none is free, the batch is not padded |

(Read from their source; versions in the [references](../book/references.md).)

## Which sizes real engines record

`onelaunch.padding` has the lists of five engines as plain functions. Each mark is a recorded size, up to 128:
"""

# %%
CEILING = 256
lists = {
    made.engine: made
    for made in (
        mini_sglang(CEILING),
        nano_vllm(CEILING),
        sglang(CEILING),
        vllm(CEILING),
        tensorrt_llm(CEILING, padding=True),
        tensorrt_llm(CEILING),
    )
}
viz.capture_lists({name: made.sizes for name, made in lists.items()}, top=128)

# %% [markdown]
"""
They agree on the start, 1, 2, 4 and 8: at small batch a step is cheap, and rounding 3 up to 8 would cost much more
than it saves. After that they step by 8 or 16, which is also what matrix products like.

The rules look alike. Their *edges* do not. Ask each engine for a ceiling of 20, then send batches of 3, 17, 20, 21, and
600, which is above every list:
"""

# %% tags=["nbval-check-output"]
asked = 20
edges = (
    mini_sglang(asked),
    nano_vllm(asked),
    sglang(asked),
    vllm(asked),
    tensorrt_llm(asked, padding=True),
    tensorrt_llm(asked),
)
batches = (3, 17, 20, 21, 600)
print("".join(f"{size:6}" for size in batches))
for made in edges:
    print(f"{made.engine}, largest graph {made.sizes[-1]}")
    fates = (str(made.run_as(size)) for size in batches)
    print("".join(f"{fate.replace('raises', 'error'):>6}" for fate in fates))

# %% [markdown]
"""
A number is the size that the batch runs as. The differences are worth an outage:

- **mini-sglang** records up to 16. Batches of 17 to 20 run eagerly, and nothing says so.
- **nano-vllm** records up to 16 as well, looks for a graph for 17 and raises `StopIteration`. Only above 512 it runs
  eagerly.
- **SGLang** and **TensorRT-LLM** add the ceiling to the list.
- **vLLM** goes to twice the number of requests, so that its top does not matter.
- **TensorRT-LLM** does not pad unless you ask (`enable_padding`): then only batches of exactly a recorded size use a
  graph.

This book's engine takes mini-sglang's rule and adds the ceiling, for the reason you just saw:
"""

# %% tags=["nbval-check-output"]
for ceiling in (3, 4, 20):
    print(ceiling, list(mini_sglang(ceiling).sizes), capture_sizes(ceiling))

# %% [markdown]
"""
## What padding wastes

Here is a list with few sizes, which grows by halves and doubles (it is one from the inference notes that this book
quotes). Look at 37 requests:
"""

# %%
NOTES = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256]
viz.padding_staircase(NOTES, top=64, batch=37)

# %% [markdown]
"""
37 run as 48. Directly behind a stair it is worse (33 run as 48 too), at its end nothing is wasted. But what is it on
average, *in your service*? Batches are not spread evenly. We need traffic. This one is **simulated**: requests arrive at random, in
waves, each stays for a random number of steps (160 on average), and we count how many are running in each step.
"""

# %%
import math
import random
from collections import Counter


def traffic(steps: int = 40_000, most: int = 256) -> Counter[int]:
    """Batch size -> how many decode steps had it."""
    rng = random.Random(7)
    counts: Counter[int] = Counter()
    leaving: Counter[int] = Counter()  # step -> requests that end before it
    running = waiting = 0
    for step in range(steps):
        running -= leaving.pop(step, 0)
        load = 0.35 * (1 + math.sin(2 * math.pi * step / 10_000) ** 3)
        waiting += sum(rng.random() < load / 4 for _ in range(4))
        while waiting and running < most:
            waiting, running = waiting - 1, running + 1
            leaving[step + 1 + int(rng.expovariate(1 / 160))] += 1
        if running:
            counts[running] += 1
    return counts


counts = traffic()
viz.padding_staircase(NOTES, top=max(counts), counts=counts)

# %% [markdown]
"""
Now each list on the same traffic. `waste_of` counts dummy rows for each live row, and steps that find no graph.
(Without padding, TensorRT-LLM's list wastes nothing; instead, steps run eagerly.)
"""

# %% tags=["nbval-check-output"]
for name, made in lists.items():
    found = waste_of(counts, made)
    eager = found.eager_steps / counts.total()
    print(f"{name:22} {len(made.sizes):3} graphs, ", end="")
    print(f"{found.share:5.1%} padding, {eager:5.1%} eager")
notes = waste(counts, NOTES)
print(
    f"{'inference notes':22} {len(NOTES):3} graphs, {notes.share:5.1%} padding"
)

# %% [markdown]
"""
### Is a row of padding as bad as an eager step?

By far not. A padded row costs part of a step. An eager step costs all the launches that the graph was made to avoid.
A report with figures for all three, for batches of 12 (vllm-project/vllm-ascend#16049, an NPU):

| how 12 requests ran | tokens/s |
|---|---|
| graph of 12 | 557 |
| padded to 16 | 500 |
| eager | 73 |

A third more rows cost a tenth of the speed. A rule of thumb: the extra time is about the extra rows' share times the
share of the step that reads the KV cache, because matrix products round up to their tiles anyway, and the weights are
read once for all rows. So: **pad rather than run eagerly, and then make the padding small.**

## The list that wastes least

How good can a list with 20 graphs be? There are more lists of 20 sizes up to 256 than you can try. But the best one
can be found exactly, by *dynamic programming*:

- The best list has only sizes that occur. (Lower a size that does not occur to the largest below it that does:
  nothing gets worse.)
- Suppose you know, for every size `i`, the fewest rows that all batches up to `i` can be computed with, using `k`
  graphs, the largest of which is `i`. Then with one graph more and the largest `j`, it is the best choice of `i`
  below `j`: batches up to `i` as before, those between at the size of `j`.

Trying every `i` for every `j` would do. `best_sizes` is quicker still: for each `i` the rows are a straight line in the
size of `j`, and only the lowest line matters, so one walk over the lines finds every choice. It takes the traffic and a
budget:
"""

# %% tags=["nbval-check-output"]
for budget in (4, 8, 13):
    best = best_sizes(counts, budget, ceiling=CEILING)
    share = waste(counts, best).share
    print(f"{budget:2} graphs, {share:5.1%} padding: {best}")

# %% [markdown]
"""
With 13 graphs it wastes much less than the 13 of the notes. It is quick enough to be called whenever the traffic has
changed. Here all sizes up to 512 occur, and it may take as many graphs as vLLM does:
"""

# %%
import time

everything = {size: 1 + size * 7919 % 101 for size in range(1, 513)}
start = time.perf_counter()
best_sizes(everything, len(vllm().sizes))
print(f"{1e3 * (time.perf_counter() - start):.0f} ms on this machine")

# %% [markdown]
"""
And against the engines, for every number of graphs:
"""

# %%
points = {name: made.sizes for name, made in lists.items() if made.pads}
points["inference notes"] = tuple(NOTES)
viz.waste_against_graphs(
    best={
        budget: waste(counts, best_sizes(counts, budget, CEILING)).share
        for budget in range(4, 52)
    },
    lists={
        name: (len(sizes), waste(counts, sizes).share)
        for name, sizes in points.items()
    },
)

# %% [markdown]
"""
The curve falls steeply at first and then hardly at all. An engine that knows nothing of your traffic has to spread its
sizes evenly and lies above the curve. How many graphs would a list made for this traffic need to waste no more?
"""

# %% tags=["nbval-check-output"]
for name, sizes in points.items():
    target = waste(counts, sizes).padded_rows
    fewest = next(
        budget
        for budget in range(1, 100)
        if waste(counts, best_sizes(counts, budget, CEILING)).padded_rows
        <= target
    )
    print(f"{name:22} {len(sizes):2} graphs, {fewest:2} would do")

# %% [markdown]
"""
Do not overdo it. The list was made for one histogram. On other traffic it may be worse than an even one:
"""

# %% tags=["nbval-check-output"]
night = Counter({size: n for size, n in counts.items() if size <= 24})
tuned = best_sizes(counts, 13, CEILING)
for name, traffic_now in (("all day", counts), ("only at night", night)):
    ours, theirs = waste(traffic_now, tuned), waste(traffic_now, NOTES)
    print(f"{name:14} tuned {ours.share:5.1%}   even {theirs.share:5.1%}")

# %% [markdown]
"""
### Try it

Choose a list and traffic, and move the batch. The area between the stairs and the diagonal is what is computed for
nobody; what it costs depends on how often a batch falls there. "The best for this traffic" is what `best_sizes` finds;
"your own" takes what you type.
"""

# %%
explorer = viz.padding_explorer(
    {"inference notes": NOTES, **lists},
    {"all day": counts, "only at night": night},
)
explorer

# %% [markdown]
"""
Try this: find the list of the engines that wastes least at night. Then give "the best for this traffic" as few graphs
as you can, until it wastes more than that list.

In a running notebook, the same knobs are there as widgets, which draw with Python. (Nothing shows in a page: widgets
need a kernel.)
"""

# %%
from IPython.display import display

if viz.in_live_notebook():
    display(explorer.widgets())

# %% [markdown]
"""
## What a list costs

Each graph costs memory and time at the start. In memory, two parts: what grows with the *largest* size (the fixed
buffers, of which the logits are the largest, and the pool that all graphs share, [chapter 5](05_memory.ipynb)), and
what *each graph* takes for itself. On the emulator the first part can be measured:
"""


# %%
def pool_and_buffers(runner) -> int:
    """Bytes that the largest graph needs, for all graphs together."""
    return runner.graph_map[runner.max_graph_bs].pool().peak_bytes + sum(
        tensor.nbytes for tensor in vars(runner.buffer).values()
    )


def row_bytes() -> float | None:
    """Bytes for each row more. None on a GPU, whose pools do not tell."""
    if not hasattr(runner.graph_map[4].pool(), "peak_bytes"):
        return None
    with LLM(
        "smollm2-135m",
        cuda_graph_bs=[8],
        max_running_req=8,
        max_seq_len_override=128,
    ) as larger:
        more = pool_and_buffers(larger.engine.runner)
    return (more - pool_and_buffers(runner)) / 4


each_row = row_bytes()
if each_row is not None:
    print(f"{each_row / 2**20:.2f} MiB for each row of the largest size")
    logits = llm.config.vocab_size * 4
    print(f"{logits / each_row:.0%} of that are the logits in the buffer")

# %% [markdown]
"""
The second part belongs to CUDA (the instantiated graph with its kernels' arguments) and cannot be seen here. Reports:
6 to 8 MiB for small sizes and 24 to 28 for large ones in vLLM with Llama-3.1-8B, about 10 MiB a graph in TensorRT-LLM
with DeepSeek-R1, and about 100 MiB a graph by the estimate of a mini-sglang pull request
([sources](../book/references.md)). In tokens of KV cache, for a Llama of 8 billion weights (128 KiB a token in 16
bits), at 10 MiB a graph:
"""

# %% tags=["nbval-check-output"]
MIB = 2**20
KV_TOKEN = 2 * 32 * 8 * 128 * 2  # key and value, layers, heads, width, bytes
LOGITS = 128_256 * 4  # one row of them, in float32
for name, sizes in points.items():
    cost = memory_bytes(sizes, row_bytes=LOGITS, graph_bytes=10 * MIB)
    tokens = cost // KV_TOKEN
    print(f"{name:22} {cost / MIB:4.0f} MiB, {tokens} tokens of KV cache")

# %% [markdown]
"""
And time: 0.05 to 0.07 s a size in vLLM with an 8B model, so a few seconds for a long list. mini-sglang's pull request
#56 weighed all this and went from an average waste of 17.3% to 7.3% for about seven graphs more.

## Common mistakes

### A ceiling that the list misses

You saw it above: ask for 20, get 16. Here it is in the engine, with an explicit list. The engine says it once, and
counts:
"""

# %%
short = LLM(
    "random:llama",
    cuda_graph_bs=[1, 2, 4],
    max_running_req=5,
    max_seq_len_override=64,
)

# %% tags=["nbval-check-output"]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    short.generate([[1], [2], [3], [4], [5]], params)
print(str(said[0].message).split(". This")[0])
print("eager steps:", short.engine.runner.stats.eager_fallbacks)
short.shutdown()

# %% [markdown]
"""
### Preparing the batch before padding it

All inputs have to be made for the padded rows, so padding comes first. The other order fails, and mostly loudly. Mostly:
"""

# %% tags=["nbval-check-output"]
pad_batch = runner.pad_batch


def generate_padding_late(prompts: list[str]) -> str:
    def pad_nothing(batch) -> None:
        batch.padded_reqs = batch.reqs

    def pad_now(batch):
        pad_batch(batch)
        return type(runner).replay(runner, batch)

    runner.pad_batch, runner.replay = pad_nothing, pad_now  # the mistake
    try:
        answers = llm.generate(prompts, params)
        return "right" if answers == expected[: len(prompts)] else "wrong"
    except RuntimeError as error:
        return f"RuntimeError: {str(error).split(' must match')[0]}"
    finally:
        del runner.pad_batch, runner.replay


for size in (1, 2, 3):
    print(size, "of graphs 1, 2, 4:", generate_padding_late(prompts[:size]))

# %% [markdown]
"""
Batches of a recorded size pass: there is nothing to pad. **Always test with a size that is not in the list.** (And not
with one request in a graph of two either: `copy_` spreads one row over two without a word.)

### Averaging over sizes instead of steps

Waste per *size*, averaged over all sizes, is not what your service pays:
"""

# %% tags=["nbval-check-output"]
every = range(1, max(counts) + 1)
sizes = lists["nano-vllm"].sizes
by_size = sum(padded_size(n, sizes) / n - 1 for n in every) / len(every)
print(f"average over sizes {by_size:.1%}")
print(f"over the traffic   {waste(counts, sizes).share:.1%}")

# %% [markdown]
"""
### Recording everything

One graph for every size wastes nothing, and takes minutes of start and gigabytes of cache. With less cache fewer
requests fit, and the batch that the graphs were made for is never reached.

## How to explain it, in three sentences

A graph has one batch size, so a batch runs in the next larger one, and dummy requests fill the gap, writing to a page
that nobody reads. More sizes mean less padding, a longer start and less room for the KV cache; the first few graphs
bring most of the gain. Padding costs little, an eager step costs everything the graph had saved, so make sure that
every batch that can occur has a graph.

## Questions you may be asked

<details>
<summary>Why do most lists begin 1, 2, 4, 8 and then go on in steps of 8?</summary>

Small batches are where the relative waste is largest (3 run as 8 is 167% on top) and where latency matters most.
Above 8, matrix products work in tiles of 8 or 16 rows, so a finer list would save little.

</details>

<details>
<summary>A service runs 100 requests at most and mostly 60 to 70. Which list would you use?</summary>

A few sizes for the small end (1, 2, 4, 8, 16, 32), a fine grid where the time is spent (60, 62, ... 70), a few up to
100, and 100 itself. Or feed a day's histogram into `best_sizes`.

</details>

<details>
<summary>How do you notice that an engine runs eagerly although graphs are on?</summary>

Not in the answers; they are right. Count the fallbacks and export the count, and log the batch sizes that caused
them. Throughput that drops at one batch size and recovers at the next is the sign.

</details>

<details>
<summary>Why is the dummy's length 1 and not 0?</summary>

Attention over nothing is a softmax over nothing, which is NaN in many kernels. With one token there is something to
attend to.

</details>

<details>
<summary>Could one record only the largest size, and always pad to it?</summary>

Yes, and every small batch would cost as much as the largest: attention for every dummy row, logits for every dummy
row. It is the list with budget 1; the figure leaves it out because it is far above the rest.

</details>

## Summary

- A batch runs as the next recorded size. The dummy's page makes that harmless.
- Engines agree on the rule and differ at the edges: silent eager, an exception, or one graph more.
- Waste depends on traffic: count batch sizes, and weigh by steps.
- The list that wastes least can be computed exactly. Made for the traffic, it needs about half as many graphs.
- Padding is cheap, eager is not.

## Exercises

[Exercise 2, Pad a batch](../exercises/ex02_pad_a_batch.ipynb), and
[exercise 3, The list that wastes least](../exercises/ex03_best_list.ipynb), judge what you write, in their pages or in
a notebook. And to find out by hand:

1. Find the smallest budget whose best list wastes less than 5% on this traffic.
2. Change `best_sizes` to weigh a row by how long it takes: a step of `n` rows costs `20 + n`. Does the best
   list change? Why?
3. `vllm(256)` records 51 sizes, and many of them can never be reached with 256 requests. Which, and what do they cost?
4. Take the batch sizes of a real run of this engine (`llm.step()` returns the batch) and find the best list of three.

## Further reading

- `src/onelaunch/padding.py`: everything in this chapter, without torch.
- mini-sglang, pull request 56: a list changed with figures.
- vLLM, `_set_cudagraph_sizes`: how its list comes about, with comments.
- The [references](../book/references.md) for the figures and reports quoted here.
"""

# %%
llm.shutdown()
