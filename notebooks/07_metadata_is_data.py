# %% [markdown]
"""
# Metadata is data

**Who this is for.** You know that a graph's shapes are fixed, and that a request grows by one token at every step. One
of the two has to give way, and you want to see which.

**After this chapter** you can say why paged attention can be recorded and plain attention cannot, what the three hooks
of an attention backend do and when, and what the simplest recordable attention costs.

*About 45 minutes. Medium. You need [chapter 2](02_a_small_llm_engine.ipynb) for the page table, and
[chapter 6](06_fixed_buffers.ipynb) for fixed buffers; no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. A request has 17 tokens at this step and 18 at the next. Which shape of a recorded step changes?
2. Why can `keys[:length]` not be recorded? There are two answers, depending on what `length` is.
3. When are `prepare_for_capture` and `prepare_for_replay` called, and which of them assigns and which copies?
4. Attention by gathering costs the same for a request of 10 tokens and one of 1,000. Why?

**Answers.** 1: none; a length is a number in a tensor. 2: a Python number is frozen, so all replays use the first
length; a tensor has to be read by the host, which a capture refuses. 3: once for each size, before it is recorded, and
it assigns; before each replay, and it copies. 4: it reads as many positions as the longest possible request has, and
masks the rest.

</details>
"""

# %%
import torch

from onelaunch import LLM, SamplingParams, cuda, viz

DEVICE = "cpu" if cuda.is_emulated else "cuda"

# %% [markdown]
"""
## Three ways to look at the first `n` tokens

Attention looks at the tokens that are there, and at each step there is one more. Here is attention of one query over a
cache with 32 places, written in three ways. They compute the same.
"""

# %%
torch.manual_seed(0)
PLACES = 32
keys = torch.randn(PLACES, 8, device=DEVICE)
query = torch.randn(8, device=DEVICE)

number = 5  # the length, as Python's
length = torch.tensor([5], device=DEVICE)  # the length, on the device
place = torch.arange(PLACES, device=DEVICE)


def python_number() -> torch.Tensor:
    seen = keys[:number]
    return (seen @ query).softmax(0) @ seen


def ask_the_device() -> torch.Tensor:
    seen = keys[: length.item()]
    return (seen @ query).softmax(0) @ seen


def mask() -> torch.Tensor:
    scores = (keys @ query).masked_fill(place >= length, -torch.inf)
    return scores.softmax(0) @ keys


for other in (ask_the_device, mask):
    print("same:", torch.allclose(python_number(), other(), atol=1e-6))

# %% [markdown]
"""
Record each with 5 tokens, then replay it with 5 and with 20. Guess which of them is right at 20.
"""


# %% tags=["nbval-check-output"]
def record(step) -> tuple[cuda.CUDAGraph, torch.Tensor]:
    """Warm-up, then capture: the graph, and its output."""
    stream = cuda.Stream()
    stream.wait_stream(cuda.current_stream())
    with cuda.stream(stream):
        step()
    cuda.current_stream().wait_stream(stream)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = step()
    return graph, out


for step in (python_number, mask, ask_the_device):
    number = 5
    length.fill_(5)
    try:
        graph, out = record(step)
    except RuntimeError as error:
        print(f"{step.__name__}: refused")
        refusal = error
        continue
    for number in (5, 20):
        length.fill_(number)
        graph.replay()
        right = torch.allclose(out, step(), atol=1e-6)
        print(f"{step.__name__}, {number} tokens: right is {right}")

# %% tags=["nbval-check-output"]
if cuda.is_emulated:
    print("refused:", refusal.call, "-", refusal.why + ".")
    print("instead:", refusal.fix)

# %% [markdown]
"""
- `python_number` was recorded with a slice of five rows. At 20 it still looks at five. No error.
- `ask_the_device` needs the number to know the *shape* of the slice. Reading it makes the host wait for the device,
  and during a capture there is nothing to wait for. Refused
  ([chapter 4](04_what_a_capture_refuses.ipynb) has all such rules).
- `mask` always computes all 32 places. The length is **a value in a tensor**, compared with the places by a kernel.
  It can be recorded, and the recording is right for every length up to 32.

That is the whole idea of this chapter. **What varies must be data, not shape.** The length is data. So is the page
table: which pages a request has is a row of numbers in a tensor of fixed width.

## The same graph, other lengths

The `gather` backend of this engine is the third way, over pages. Three requests of different lengths run in one graph
of four, and we look at what it finds in its fixed buffers, at two steps:
"""

# %%
llm = LLM(
    "smollm2-135m",
    cuda_graph_bs=[4],
    max_running_req=4,
    max_seq_len_override=128,
)
engine = llm.engine
attention = engine.context.attn_backend

# %% tags=["nbval-check-output"]
texts = [
    "The capital of France is",
    "Once upon a time, in a village by the sea, there lived a girl who "
    "could talk to the gulls, and every morning she asked them",
    "1, 2, 3, 4, 5, 6, 7,",
]
params = SamplingParams(max_tokens=40, ignore_eos=True)
handles = [llm.submit(text, params) for text in texts]
llm.step()  # the prefill

steps = {}
for count in range(1, 40):
    batch = llm.step()
    if count in (1, 30):
        lengths = attention.fixed.seq_lens[: batch.size].tolist()
        pages = [len(req.pages) for req in batch.reqs]
        print(f"decode step {count}: lengths {lengths}, pages {pages}")
        steps[f"decode step {count}"] = lengths
print("graphs:", len(engine.runner.graph_map))
print("replays:", engine.runner.stats.replays)

# %%
viz.gathered_tokens(steps, max_len=llm.max_seq_len)

# %% [markdown]
"""
One graph, and a different length in every row of every step. The shapes of the recorded step are these, and
they know nothing of lengths:
"""

# %% tags=["nbval-check-output"]
for name in ("page_table", "seq_lens"):
    fixed = getattr(attention.fixed, name)
    print(f"{name:10} {list(fixed.shape)}, {fixed.dtype}")

# %% [markdown]
"""
The text must be what the reference attention writes, which takes the requests one by one, cuts each to its length,
and was never recorded:
"""

# %% tags=["nbval-check-output"]
with LLM(
    "smollm2-135m", attention_backend="torch", max_seq_len_override=128
) as reference:
    expected = reference.generate(texts, params)
for handle, answer in zip(handles, expected, strict=True):
    print("same text:", handle.text == answer["text"])

# %% [markdown]
"""
## Why paged, and not plain

A cache without pages keeps each request's keys in a tensor of its own, which grows: `torch.cat([keys, new])`. The new
tensor lies at a new address and has a new shape. Both are what a graph cannot follow.

With pages nothing moves. The cache is one tensor, made once. A new token goes to a *slot*, whose number is data
(`out_loc`). A request that needs another page gets one more entry in its row of the page table. Growing is writing
numbers into tensors that are already there. Pages were invented to save memory; that the step can be recorded is the
second gift. (A cache made once for the longest text, without pages, can be recorded as well: Hugging Face's
`StaticCache` does that, and pays with memory.)

## The three hooks

What exactly a backend reads of a batch is its own business: this one a table and lengths, FlashInfer a different
layout of indices. So the engine does not copy these; it tells the backend when. Let us listen:
"""

# %%
from onelaunch.attention import BACKENDS, GatherBackend

calls = []


class Talkative(GatherBackend):
    """Gathers as usual, and says which of its functions are called."""

    def init_capture_graph(self, bs_list) -> None:
        calls.append(f"init_capture_graph({bs_list})")
        super().init_capture_graph(bs_list)

    def prepare_for_capture(self, batch) -> None:
        calls.append(f"prepare_for_capture(batch of {batch.padded_size})")
        super().prepare_for_capture(batch)

    def prepare_metadata(self, batch) -> None:
        calls.append(f"prepare_metadata({batch.phase})")
        super().prepare_metadata(batch)

    def prepare_for_replay(self, batch) -> None:
        calls.append("prepare_for_replay")
        super().prepare_for_replay(batch)

    def forward(self, q, k, v, layer_id, batch) -> torch.Tensor:
        if layer_id == 0:
            calls.append("    forward, in every layer")
        return super().forward(q, k, v, layer_id, batch)


BACKENDS["talkative"] = Talkative
small = LLM(
    "random:llama",
    attention_backend="talkative",
    cuda_graph_bs=[2, 4],
    max_running_req=4,
    max_seq_len_override=64,
)

# %% tags=["nbval-check-output"]
short = SamplingParams(max_tokens=3, ignore_eos=True)
small.generate([[1, 2], [3], [4, 5, 6]], short)
small.shutdown()
print("\n".join(calls))

# %% [markdown]
"""
- `init_capture_graph(bs_list)`, once: makes the fixed buffers, for the largest size, filled with the dummy's values.
- `prepare_for_capture(batch)`, before each capture: *assigns*. The batch's metadata become views of the buffers.
- `prepare_for_replay(batch)`, before each replay: *copies* the step's metadata into the buffers.

Each size calls `forward` twice: the warm-up and the capture. After the prefill it is **never called again**. And
`prepare_metadata` is host work: it may build lists, ask Python for lengths and make new tensors, because it is not
recorded. The split is always the same: *decide on the host, outside; compute on the device, inside; and let a fixed
buffer stand between them*.

## Why the reference is refused

The reference backend of chapter 2 is the second way of the beginning. The engine knows, and says so:
"""

# %% tags=["nbval-check-output"]
import warnings

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    plain = LLM(
        "random:llama",
        attention_backend="torch",
        cuda_graph_bs=[4],
        max_running_req=4,
        max_seq_len_override=64,
    )
print(str(said[0].message).split(". Use")[0])

# %% [markdown]
"""
Do not take its word for it. We hand its step to a capture ourselves, and see what stops it:
"""

# %% tags=["nbval-check-output"]
from onelaunch.engine.core import Batch

handle = plain.submit([1, 2, 3], SamplingParams(max_tokens=4))
plain.step()
batch = Batch([handle.req], "decode")


def decode_step() -> torch.Tensor:
    context = plain.engine.context
    with context.forward_batch(batch):
        return plain.engine.model(batch.input_ids, batch.positions, context)


with torch.inference_mode():
    plain.engine.prepare_batch(batch)
    try:
        record(decode_step)
    except RuntimeError as error:
        refusal = error
if cuda.is_emulated:
    print("refused:", refusal.call, "on", refusal.name)
    print("in file:", refusal.where.file.split("/")[-1])
    print("a GPU says:", refusal.cuda_error)
plain.shutdown()

# %% [markdown]
"""
`seq_lens.tolist()`: one line that asks the device for every length. Without it the slices behind it have no size.
To make this backend recordable it is not enough to move the line out: the lengths would then be Python numbers, and
frozen, which is worse.

## What gathering costs

The picture above shows the price: most of what is read is thrown away. Each request costs what the longest possible
one costs. The bytes that attention reads from the cache in one step:
"""


# %% tags=["nbval-check-output"]
def cache_bytes(llm: LLM, positions: int) -> int:
    """Keys and values of that many positions, in all layers, as float16."""
    config = llm.config
    one = config.num_key_value_heads * config.head_dim
    return 2 * config.num_hidden_layers * one * positions * 2


used = sum(steps["decode step 30"])
for max_len in (128, 512, 2048):
    read = cache_bytes(llm, 3 * max_len) / cache_bytes(llm, used)
    mib = cache_bytes(llm, 3 * max_len) / 2**20
    print(f"longest {max_len:4}: {mib:6.1f} MiB, {read:5.1f} times the need")

# %% [markdown]
"""
And in time, on the machine that runs this, for eight short requests of a tiny random model:
"""

# %%
import statistics
import time


def step_ms(backend: str, max_len: int) -> float:
    """Median time of a decode step, without graphs."""
    with LLM(
        "random:llama",
        attention_backend=backend,
        max_running_req=8,
        max_seq_len_override=max_len,
    ) as llm:
        for _ in range(8):
            llm.submit([1, 2, 3], params)
        llm.step()
        times = []
        start = time.perf_counter()
        while llm.step() is not None:
            cuda.synchronize()
            now = time.perf_counter()
            times.append(now - start)
            start = now
    return 1e3 * statistics.median(times)


measured = {
    f"longest possible request: {max_len} tokens": {
        backend: step_ms(backend, max_len) for backend in ("gather", "torch")
    }
    for max_len in (64, 512, 2048)
}
viz.bars(measured, "time of a decode step", "ms")

# %% [markdown]
"""
The reference does not care how long a request *could* be. Gathering does. So:

- Lower `max_seq_len_override` to what you need. It is the one setting that this backend's speed depends on.
- Real engines use a **kernel that reads the lengths itself**, on the device, while it runs. Its launch is fixed, as a
  graph wants it, and each request's part of it stops at that request's length. FlashAttention takes `cache_seqlens`
  and `block_table`, FlashInfer copies its plan into fixed buffers before each replay. The metadata is still data; only
  the waste is gone.

Chapter 14 is about these. For learning, gathering is the best there is: it is plain PyTorch and you can read it
(`src/onelaunch/attention/gather.py`).

## Common mistakes

### Rebinding the metadata

The fault of chapter 6 in its most frequent dress. `prepare_for_replay` gets a batch whose metadata are complete and
correct. Why copy, when one can take them over?
"""


# %%
class Rebinding(GatherBackend):
    def prepare_for_replay(self, batch) -> None:
        self.fixed = batch.attn_metadata  # the mistake


BACKENDS["rebinding"] = Rebinding
broken = LLM(
    "smollm2-135m",
    attention_backend="rebinding",
    cuda_graph_bs=[4],
    max_running_req=4,
    max_seq_len_override=128,
)

# %% tags=["nbval-check-output"]
answers = broken.generate(texts, params)
broken.shutdown()
for right, wrong in zip(expected, answers, strict=True):
    same = right["token_ids"] == wrong["token_ids"]
    print(f"right: {same}  {wrong['text'][:40]!r}")

# %% [markdown]
"""
The graph still reads what `init_capture_graph` made: every request has one token, in the dummy's page. All three
attend to nothing that is theirs. Public reports: an attribute that was rebound (pytorch/pytorch#114844), metadata for
100 of 112 rows (xLLM-AI/xllm#1939; [both](../book/references.md)).

### A row with nothing to look at

A dummy with length 0 sounds right: it has no tokens. But softmax over nothing is 0 divided by 0:
"""

# %% tags=["nbval-check-output"]
nothing = torch.full((4,), -torch.inf)
print("softmax over nothing:", nothing.softmax(0).tolist())

# %% [markdown]
"""
PyTorch 2.13's own `scaled_dot_product_attention` answers with zeros here on a CPU, other kernels with NaN
(flashinfer-ai/flashinfer#2883 is such a report). In its own row a NaN harms nobody. But operations that mix rows
exist, such as a scale for the whole batch in a quantized layer, and then it does. So padded rows get **length 1**, and
a page of their own with one token in it.

### Trusting the mask

What lies behind the mask is multiplied by zero. So it does not matter what is there. Does it?
"""

# %% tags=["nbval-check-output"]
weights = torch.tensor([0.5, 0.5, 0.0])  # the third place is masked
values = torch.tensor([1.0, 3.0, torch.nan])  # and nobody cleared it
print("0 x NaN:", (weights * values).sum().item())

# %% [markdown]
"""
Zero times NaN is NaN. Masking the *scores* is no protection from garbage in the *values*: a page that a request gets
may hold anything. This backend lets masked positions read the request's own first token, which is always a number.
Others clear their pages, or skip masked positions in the kernel. vLLM met garbage in the block that stands for
"nothing" (vllm-project/vllm#36939).

### A table as wide as this batch needs

It is tempting to cut the page table to the longest request that is running. Its width is then a shape, and a graph
recorded with one width cannot take another: nano-vllm met a block table wider than the captured one
(GeeeekExplorer/nano-vllm#190, loud). Fix the width by the longest *possible* request.

## How to explain it, in three sentences

A graph's shapes are frozen, and a decoding request grows, so its length and its pages must be numbers inside tensors
of fixed size. Paged attention is already built like that: nothing moves when a request grows, only entries of a table
and a length change, and a mask or a kernel that reads the length does the rest. The backend owns fixed buffers for
these numbers, gets recorded on them, and fills them before each replay.

## Questions you may be asked

<details>
<summary>Why does the engine not copy the metadata itself, as it does with the positions?</summary>

Because what they are depends on the backend: rows of a table here, flattened page indices with offsets in FlashInfer,
block tables elsewhere. The engine would have to know all of them. It calls hooks instead.

</details>

<details>
<summary>A length is passed to a kernel as an <code>int</code>, for example <code>max_seqlen_k</code>. What happens in a graph?</summary>

It is frozen at the value of the capture. If the kernel uses it to bound its loop, later and longer requests are cut
off silently: huggingface/transformers#45323, where a mathematics benchmark fell from 0.45 to 0.23. Pass the largest
possible value at capture.

</details>

<details>
<summary>Why can FlashInfer's <code>plan()</code> not be recorded?</summary>

It is host work: it looks at the lengths and divides the work among the processors of the GPU. It runs before the
replay and leaves its result in fixed buffers. That is what `prepare_for_replay` is for.

</details>

<details>
<summary>Prefill has lengths and pages too. Why is it not recorded in the same way?</summary>

Its number of *tokens* differs, and that is a shape of every matrix product, not only of attention. One would have to
pad prompts to a few recorded lengths. Some engines record prefills, in pieces between the attention calls; the gain is
smaller, because a prefill's kernels are long.

</details>

<details>
<summary>Where does the mask come from, if nothing may be made on the host?</summary>

Kernels make it inside the graph: `arange(max_len) < seq_lens[:, None]`. The `arange` never changes and is made once;
the comparison is recorded and reads the lengths anew at every replay.

</details>

## Summary

- What varies must be data. Lengths and pages are; slices and concatenations are not.
- A Python length is frozen and silent; a length that is read is refused and loud; a mask is right.
- `init_capture_graph` makes buffers, `prepare_for_capture` assigns, `prepare_for_replay` copies.
- Gathering costs the longest possible request, always. Kernels that read lengths on the device do not.
- Dummy rows have length 1, and masked values must be numbers.

## Exercises

Exercise 5, The metadata hooks, runs your three hooks in the real engine, and judges it:
`exercises/ex05_metadata_hooks.ipynb`. And to find out by hand:

1. Change `mask()` so that it is right for a *sliding window* of the last 8 tokens, and record it.
2. Write a backend whose `prepare_for_replay` copies the lengths but not the table. After how many tokens does the
   text go wrong, and why not at once?
3. Give the dummy length 0 in a subclass of `GatherBackend` (mind the `clamp` in `_locate`). Does a live row change?
4. How many bytes are the fixed buffers of a backend with 256 rows and texts of up to 128 Ki tokens, in pages of 16?
   What would you do about it?

## Further reading

- `src/onelaunch/attention/base.py`: the contract that this chapter walked through, in a hundred lines.
- mini-sglang, `attention/`: the same three hooks over FlashInfer and FlashAttention.
- *Efficient Memory Management for Large Language Model Serving with PagedAttention*, [arXiv
  2309.06180](https://arxiv.org/abs/2309.06180).
- The [references](../book/references.md) for the reports quoted here.
"""

# %%
llm.shutdown()
