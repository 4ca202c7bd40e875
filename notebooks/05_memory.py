# %% [markdown]
"""
# Memory

**Who this is for.** You have captured a step and seen that its results have fixed addresses. Now you want to know what
that costs, and why one graph can destroy the result of another.

**After this chapter** you can say where a graph's results live and why they take little room, capture many sizes for
the price of one, predict which replay overwrites which output, and convert the cost of graphs into pages of KV cache.

*About 40 minutes. Medium. You need [chapter 3](03_first_capture.ipynb); no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. A step makes forty intermediate results of 1 MiB, one after the other. How much memory does its graph need?
2. What frees the memory of an intermediate result while a step is captured?
3. Why do engines capture the largest batch size first?
4. Two graphs share a pool. You replay the first, then the second. Is the first one's output still there?

**Answers.** 1: about as much as are needed at the same time, two or three of them. 2: the end of the last Python
reference to it. 3: the smaller ones then fit into the memory that is there; the other way round each larger one needs
more. 4: it depends on who was captured first and what was alive then; do not rely on it, copy it out.

</details>
"""

# %%
from dataclasses import replace

import torch

from onelaunch import cuda, viz
from onelaunch.padding import capture_sizes

torch.manual_seed(0)
device = "cpu" if cuda.is_emulated else "cuda"
NO_TAPE = "A real graph does not show its tape. See the page for this one."

# %% [markdown]
"""
## The graph's own memory

Six layers, one after the other. Each makes two results, and nobody needs them once the next is made:
"""

# %%
weights = [torch.randn(64, 64, device=device) / 8 for _ in range(6)]
x = torch.randn(8, 64, device=device)


def chain(x: torch.Tensor, seen: list | None = None) -> torch.Tensor:
    for weight in weights:
        x = (x @ weight).relu()
        if seen is not None:
            seen.append(x)
    return x


def capture(step, pool=None):
    """Warm up and record step(); its graph and its result."""
    step()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, pool=pool):
        out = step()
    return graph, out


g, y = capture(lambda: chain(x))

# %%
viz.pool_map(g.tape) if cuda.is_emulated else NO_TAPE

# %% [markdown]
"""
The picture shows the graph's [**pool**](../book/glossary.md#pool): addresses upwards, kernels from left to right. A box
is a result. It begins with the kernel that makes it and ends where its memory is free again. The results of a layer take
the places of the layer before.

During a capture PyTorch's allocator works as always: who is done gives back, who comes next takes it. Only that the
memory comes from a pool that belongs to the graph, and that the addresses are written down. **A replay allocates
nothing.** It follows the addresses.
"""

# %% tags=["nbval-check-output"]
if cuda.is_emulated:
    pool = g.pool()
    print(f"if nothing were used twice: {pool.naive_bytes:6,} bytes")
    print(f"in use at one time:         {pool.peak_bytes:6,} bytes")
    print(f"taken from the device:      {pool.reserved_bytes:6,} bytes")

# %% [markdown]
"""
The third number is large because the allocator takes memory in **segments**: 2 MiB for small requests, 20 MiB for
medium ones, more for those above 10 MiB. Remember that segments do not merge.

## A reference is an owner

Who says that a result is no longer needed? Python does. The memory is free when the last reference to the tensor is
gone. So a harmless line of debugging code costs memory. Let `chain` remember what each layer gave:
"""

# %% tags=["nbval-check-output"]
seen = []
curious, y2 = capture(lambda: chain(x, seen))
if cuda.is_emulated:
    print(f"without the list: {g.pool().peak_bytes:6,} bytes")
    print(f"with the list:    {curious.pool().peak_bytes:6,} bytes")

# %%
viz.pool_map(curious.tape) if cuda.is_emulated else NO_TAPE

# %% [markdown]
"""
All boxes on the list last to the end, and are outputs now. A local variable is an owner too: in the feed-forward part
of chapter 3, `hidden` keeps its memory until `forward` returns. In a step that is recorded for many sizes, look for
such owners: attributes, lists, closures, hooks.

What you return has to be owned, of course. An output keeps its place as long as you hold it.

## Many sizes, one pool

An engine records a graph for each of several batch sizes. Only one of them runs at a time, so they can all use the
same memory: `pool=` hands the first one's pool to the others. **In which order they are recorded matters.** Take
fifteen sizes and a step that makes logits for a vocabulary as large as Llama 3's, and copies them out:
"""

# %% tags=["nbval-check-output"]
sizes = capture_sizes(96)
print(len(sizes), "sizes:", sizes)

vocabulary = 128_256
hidden = torch.randn(96, 64, device=device)
head = torch.randn(64, vocabulary, device=device)
logits = torch.empty(96, vocabulary, device=device)


def reserved_mib(graph) -> float:
    if cuda.is_emulated:
        return graph.pool().reserved_bytes / 2**20
    return torch.cuda.memory_reserved() / 2**20  # all of the process


def record(order: list[int]) -> dict[int, float]:
    """MiB that the shared pool has after each size."""
    pool, grown, graphs = cuda.graph_pool_handle(), {}, []
    for size in order:

        def step(size: int = size) -> None:
            logits[:size].copy_(hidden[:size] @ head)

        graphs.append(capture(step, pool)[0])
        grown[size] = reserved_mib(graphs[-1])
    return grown


largest_first = record(sizes[::-1])
smallest_first = record(sizes)
print("size   largest first   smallest first   (MiB in the pool)")
for size in sizes:
    print(f"{size:4} {largest_first[size]:15.0f} {smallest_first[size]:16.0f}")

# %% [markdown]
"""
Read the middle column from the bottom up and the right one from the top down, as they were recorded. Largest first,
the pool is as large as the largest needs, and nearly all others fit in. Smallest first, each larger size finds only
holes that are too small, because segments do not merge, and takes a new one.
"""

# %% tags=["nbval-check-output"]
if cuda.is_emulated:
    best, worst = largest_first[1], smallest_first[96]
    print(f"{worst:.0f} MiB against {best:.0f}: {worst / best:.1f} times")

# %% [markdown]
"""
mini-sglang, nano-vllm, SGLang and vLLM record the largest first.

## Two graphs, one place

Sharing has a price. Record a step for 8 rows, then one for 4 rows into the same pool:
"""

# %%
large, large_out = capture(lambda: chain(x))
small, small_out = capture(lambda: chain(x[:4]), large.pool())

# %%
viz.pool_map(large.tape, small.tape) if cuda.is_emulated else NO_TAPE

# %% [markdown]
"""
When the second graph was recorded, the first one's results were gone, except for its output, which you hold. So the
second took their places: also for *its* output. Look at the left panel. The dashed box is the small graph's output, and
boxes of the large graph cross it.

You can predict what that means from the addresses alone, before you run anything:
"""


# %% tags=["nbval-check-output"]
def writers(output: torch.Tensor, tape) -> list[int]:
    """The kernels of a tape that write to the memory of a tensor."""
    start, end = output.data_ptr(), output.data_ptr() + output.nbytes
    found = []
    for kernel in tape.kernels:
        for place in kernel.writes:
            address = tape.buffers[place.buffer].address
            first, past = (address + offset for offset in place.span)
            if first < end and start < past:
                found.append(kernel.index)
    return found


if cuda.is_emulated:
    print("kernels of large that hit small's:", writers(small_out, large.tape))
    print("kernels of small that hit large's:", writers(large_out, small.tape))
    # A tape answers this for all outputs of another one:
    print("outputs hit:", len(large.tape.overwrites(small.tape)), end=" and ")
    print(len(small.tape.overwrites(large.tape)))

# %% [markdown]
"""
So a replay of `large` should destroy `small_out`, and a replay of `small` should leave `large_out` alone. Try it:
"""

# %% tags=["nbval-check-output"]
small.replay()
before = small_out.clone()
large.replay()
print("small's output survived large's replay:", torch.equal(small_out, before))

before = large_out.clone()
small.replay()
print("large's output survived small's replay:", torch.equal(large_out, before))

# %% [markdown]
"""
As predicted, without an error. The rule of PyTorch's documentation: graphs may share a pool and be replayed in any
order **if they never run at the same time and none of them uses an output of another**. Whoever else wants an output
has three ways to be safe:

- use it before the next replay of any graph of the pool;
- `clone` it;
- let the step copy it to a buffer of your own, outside the pool. The engine of this book does that with the logits
  (`buffer.logits` in [chapter 9](09_graph_runner.ipynb)), and so do mini-sglang and SGLang.
"""


# %% tags=["nbval-check-output"]
def copied_out(rows: int, kept: torch.Tensor):
    return capture(lambda: kept[:rows].copy_(chain(x[:rows])), large.pool())


mine = torch.empty(4, 64, device=device)
safe, _ = copied_out(4, mine)
safe.replay()
before = mine.clone()
large.replay()
print("the copy survived large's replay:", torch.equal(mine, before))

# %% [markdown]
"""
## What fifteen sizes cost

Now for a model that matters. A tape can also be recorded from shapes alone, without a single weight, so we take
Llama-3-8B in bfloat16 and record the engine's decode step for 96 requests of up to 512 tokens. Everything from here on
is **simulated**: shapes, lifetimes and the allocator's rules, not a GPU.
"""

# %%
from onelaunch.engine.shapes import SHAPES, decode_tapes

llama = SHAPES["meta-llama/Meta-Llama-3-8B"]
deep = decode_tapes(llama, [96], max_seq_len=512)[96]

# %% tags=["nbval-check-output"]
MIB = 2**20
print(f"{len(deep.kernels)} kernels in {llama.num_hidden_layers} layers")
print(f"if nothing were used twice: {deep.pool.naive_bytes / MIB:,.0f} MiB")
print(f"taken from the device:      {deep.pool.reserved_bytes / MIB:,.0f} MiB")

# %% [markdown]
"""
A layer gives back what it used, and the next one takes it. So the number of layers should not matter. With two layers
all fifteen sizes are recorded in seconds:
"""

# %%
shallow = replace(llama, num_hidden_layers=2)
shared = decode_tapes(shallow, sizes, max_seq_len=512)[96].pool
apart = sum(
    decode_tapes(shallow, [size], max_seq_len=512)[size].pool.reserved_bytes
    for size in sizes
)

# %% tags=["nbval-check-output"]
print(f"15 sizes, one pool, 2 layers: {shared.reserved_bytes / MIB:,.0f} MiB")
print(f"15 sizes, a pool for each:    {apart / MIB:,.0f} MiB")

# %% [markdown]
"""
Memory that graphs take is memory that the KV cache does not get. In its currency:
"""

# %% tags=["nbval-check-output"]
tokens_per_page, bytes_per_number = 16, 2
page = (
    2  # keys and values
    * llama.num_hidden_layers
    * llama.num_key_value_heads
    * llama.head_dim
    * tokens_per_page
    * bytes_per_number
)
print(f"a page of 16 tokens: {page / MIB:.0f} MiB")
for name, nbytes in (("one pool", shared.reserved_bytes), ("15 pools", apart)):
    pages = nbytes / page
    print(f"{name}: {pages:4.0f} pages, {16 * pages:6,.0f} tokens of context")

# %% [markdown]
"""
Two remarks, so that you read these numbers rightly.

**Most of it is this engine's attention.** Its `gather` backend copies the keys and values of all requests before it
uses them ([chapter 7](07_metadata_is_data.ipynb)). A kernel that reads the pages where they lie has no such
intermediate result.

**The pool is not all.** On a GPU each graph also takes memory of the driver for its nodes, which no pool shows and no
emulation computes. Others have measured the whole: for Llama-3.1-8B in vLLM 24 to 28 MiB for each large size and 6 to
8 MiB for each small one (vllm-project/vllm#22897, #23184), for DeepSeek-R1 in TensorRT-LLM about 10 MiB a graph
(NVIDIA/TensorRT-LLM#12895; [references](../book/references.md)). This part grows with the number of sizes, and it is
why nobody records all of them. Which to leave out is the subject of [chapter 8](08_padding.ipynb).

## Common mistakes

- **Smallest first.** The loop over sizes runs upwards because loops do. It costs a multiple, as you saw.
- **No shared pool.** Without `pool=` each graph has a pool of its own, and the sizes add up.
- **Keeping an output of a shared pool.** Any replay of the pool may overwrite it, not only its own graph's.
- **An owner that nobody thought of.** A hook, a debug list, an attribute set in `forward`: its tensor stays in the
  pool for all time. A cache entry made during the capture also has its home there (chapter 3, "No warm-up").
- **Running two graphs of one pool at the same time**, on two streams. Both write to the same places.
- **Giving the KV cache all the memory that is free, and recording after it.** vllm-project/vllm#57475 is one of many
  reports of a process that then ran out.

## How to explain it, in three sentences

While a step is captured, its results come from a pool that belongs to the graph, and are given back as Python lets go
of them, so the pool is as large as what is needed at one time. Graphs that share a pool use the same addresses again;
recorded largest first, all sizes cost hardly more than the largest. The price is that a replay of one may overwrite
the output of another, so outputs are copied out.

## Questions you may be asked

<details>
<summary>Why can a replay not allocate memory where it finds some?</summary>

Its addresses are part of the recorded kernels. It has to find the same memory every time, so the pool is reserved for as
long as the graph lives, also while the graph does not run.

</details>

<details>
<summary>May a graph read an intermediate result of another graph of the same pool?</summary>

Only if its address was not given to somebody else in between, which is what the pool is for. Hold a reference to what
has to be passed on, through the capture of the reader, and replay them in the order of their captures.
`torch.cuda.make_graphed_callables` asks for that order for this reason.

</details>

<details>
<summary>The graph has a KV cache of 40 GiB as an input. Does its pool hold 40 GiB?</summary>

No. What was there before the capture stays where it is, and the graph knows its address. Only what the step makes is
in the pool.

</details>

<details>
<summary>Does a deeper model need a larger pool?</summary>

No, as long as each layer lets go of what it made. A wider one does, and a larger batch.

</details>

<details>
<summary>Why do engines estimate the memory of graphs before they size the KV cache?</summary>

Because they record after the cache exists, and want to give it all that is left. Estimated too low, the capture runs
out of memory; too high, requests wait for pages.

</details>

## Summary

- A graph's results live in its pool, at fixed addresses, which are used again as results die. Python's references
  decide when.
- Shared pool and largest first: all sizes for the price of the largest.
- In a shared pool an output is safe until the next replay of any of its graphs.
- What graphs take, the KV cache loses. Count it in pages.

## Exercises

[Exercise 10, Plan a pool](../exercises/ex10_plan_a_pool.ipynb), judges what you write, in its page or in a notebook. And
to find out by hand:

1. Add `del` statements or split lines in the feed-forward part of chapter 3 so that its peak falls. By how much?
2. Drop `large_out` before `small` is captured. Predict with `writers` what changes, then look.
3. Record three sizes in the order middle, large, small. What does the pool cost, and why?
4. Take `SHAPES["meta-llama/Meta-Llama-3-70B"].shard(8)`. What do fifteen sizes cost on one of eight GPUs, in pages?

## Further reading

- PyTorch's documentation, "CUDA semantics", "Graph memory management": private pools and sharing them.
- `c10/cuda/CUDACachingAllocator.cpp` in PyTorch: the sizes of segments used here are its constants.
- The [references](../book/references.md) for the figures and reports quoted here.
"""
