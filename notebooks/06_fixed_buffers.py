# %% [markdown]
"""
# Fixed buffers

**Who this is for.** You know that a graph is a recording of kernels and want to know how new data gets into it.

**After this chapter** you can say what a graph reads and what it does not look at, write the buffer class that every
engine has, and recognize five ways to fill it wrongly, none of which raises an error.

*About 40 minutes. Medium. You need [chapter 2](02_a_small_llm_engine.ipynb) for what a decode step is, and
[chapter 3](03_first_capture.ipynb) for what a capture is; no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. You record `y = x * 10`, then run `x = torch.tensor([7.0])` and replay. What is `y` computed from?
2. An engine records sizes 4, 2 and 1. How many sets of input buffers does it need?
3. Three requests run in a graph of four. Which rows do you copy before the replay?
4. A buffer is float16, the values you copy into it are int64. Who notices?

**Answers.** 1: from the old tensor, which still lies where the recording reads. 2: one, for the largest; the smaller
graphs read its first rows. 3: all four; the fourth is the dummy's, and it writes too. 4: nobody; `copy_` converts,
and whole numbers above 2048 are rounded.

</details>
"""

# %%
import torch

from onelaunch import LLM, SamplingParams, cuda, viz
from onelaunch.viz import Moment

DEVICE = "cpu" if cuda.is_emulated else "cuda"

# %% [markdown]
"""
## One number in, one number out

The smallest graph there is: it multiplies by ten. `onelaunch.cuda` is PyTorch's `torch.cuda` where there is a GPU,
and an emulation of its graphs where there is none, so the same lines run on both. We run the code once
([warm-up](../book/glossary.md#warm-up)), then record it. Recording computes nothing.
"""

# %%
position = torch.zeros(1, device=DEVICE)
kept = position  # a second name for the same memory, to look at it later

stream = cuda.Stream()
stream.wait_stream(cuda.current_stream())
with cuda.stream(stream):
    position * 10  # the warm-up
cuda.current_stream().wait_stream(stream)

graph = cuda.CUDAGraph()
with cuda.graph(graph):
    result = position * 10

# %% [markdown]
"""
Now give it new input, twice. First we write into the tensor. Then we do what one does in Python all day: assign a new
tensor to the name. Guess what the second replay computes.
"""

# %% tags=["nbval-check-output"]
moments = []


def replay_and_note(done: str) -> None:
    graph.replay()
    cuda.synchronize()
    memory = {kept.data_ptr(): kept.item()}
    memory[position.data_ptr()] = position.item()
    moments.append(Moment(done, memory, position.data_ptr(), result.item()))
    print(f"{done:29} replay computes {result.item():.0f}")


position.copy_(torch.tensor([6.0]))
replay_and_note("position.copy_(6)")

position = torch.tensor([7.0], device=DEVICE)
replay_and_note("position = torch.tensor(7)")

# %% [markdown]
"""
Sixty, both times. Nothing was raised, and `print(position)` would show 7. Here is why:
"""

# %%
viz.name_and_graph("position", moments, reads=kept.data_ptr())

# %% [markdown]
"""
**A graph does not know names. It knows addresses.** At capture, `position` was a name for some memory, and the kernel
was recorded with the address of that memory. Writing *into* the tensor (`copy_`, `fill_`, `+=`) changes what lies
there. Assigning to the name makes Python look elsewhere; the graph does not follow.

So whatever a graph is to read must be written to the place it was recorded with. Such a place is a **fixed buffer**.
(Here `kept` keeps the old memory alive. Without it, the memory would be given to the next tensor that asks, and the
graph would read whatever that one holds. It has happened with weights that were loaded anew, into new tensors:
vllm-project/vllm#48941, [source](../book/references.md).)

## What a decode step reads

That was one number. What does a real step take from outside? On the emulator a graph has its
[tape](../book/glossary.md#tape), and the tape knows every piece of memory that its kernels touch.
"""

# %%
llm = LLM(
    "smollm2-135m",
    cuda_graph_max_bs=4,
    max_running_req=4,
    max_seq_len_override=256,
)
engine, runner = llm.engine, llm.engine.runner
buffer, attention = runner.buffer, engine.context.attn_backend

# %% tags=["nbval-check-output"]
known = {}  # address -> name
for owner in (buffer, attention.fixed, engine.context.kv_cache):
    for name, value in vars(owner).items():
        if isinstance(value, torch.Tensor):
            known[value.untyped_storage().data_ptr()] = name

if cuda.is_emulated:
    tape = runner.graph_map[4].tape
    for kind in ("input", "state", "weight"):
        found = [b for b in tape.buffers if b.kind == kind]
        names = sorted({known[b.address] for b in found if b.address in known})
        print(f"{len(found):3} {kind:6} {', '.join(names)}".rstrip())
else:
    print("A real graph cannot be asked what it reads. Run this on a CPU.")

# %% [markdown]
"""
- **inputs** are read and never written by the graph. Five of them are new at every step. The rest are tables made
  once, such as the sines and cosines of the rotary embedding.
- **state** is written: the KV cache, which the next step reads, and the logits, which you read.
- **weights** stay.

Five inputs are all that a step brings. Three of them belong to the tokens (`input_ids`, `positions`, `out_loc`), two
to attention (`page_table`, `seq_lens`, [the next chapter](07_metadata_is_data.ipynb)). Whoever forgets one of the five has a fault
that nobody reports.

## The buffer class

`GraphCaptureBuffer` owns the first three and the logits. It has three functions, and this is all they do:

```python
init(bs, ...)        # once: tensors of the largest size, filled with the dummy's values
set_batch(batch)     # at capture: batch.positions = self.positions[:batch.padded_size], ...
copy_from(batch)     # before each replay: self.positions[:batch.padded_size].copy_(batch.positions), ...
```

`set_batch` makes the batch's tensors *views of the buffer*, so that the model, which only sees the batch, is recorded
with the buffer's addresses. It is an assignment, and at capture that is right: it decides which address is recorded.
Look at the addresses:
"""

# %% tags=["nbval-check-output"]
from onelaunch.engine.core import Batch

batches = {
    size: Batch([engine.dummy_req] * size, "decode") for size in (4, 2, 1)
}
for size, batch in batches.items():
    buffer.set_batch(batch)
    same = batch.positions.data_ptr() == buffer.positions.data_ptr()
    shape = list(batch.positions.shape)
    print(f"graph of {size}: positions {shape}, the buffer's address: {same}")

# %% [markdown]
"""
One set of buffers serves all sizes: the graph of 2 reads the first two rows of what the graph of 4 reads. Replaying
them in turn is safe, because each replay is preceded by its own copy.

`copy_from` is the other half of the contract. Here is one step, with the padded row of the
[dummy request](../book/glossary.md#dummy-request):
"""

# %%
prompts = ["My favourite animal is", "The sun rises in the", "A triangle has"]
six = SamplingParams(max_tokens=6)


def look_at_one_step() -> viz.Figure:
    """The first decode step of the prompts, beside what the graph found in its buffers."""
    for prompt in prompts:
        llm.submit(prompt, six)
    llm.step()  # the prefill
    batch = llm.step()
    names = ("input_ids", "positions", "out_loc")
    figure = viz.fixed_buffers(
        {name: getattr(batch, name).tolist() for name in names},
        {name: getattr(buffer, name).tolist() for name in names},
        live=batch.size,
    )
    while llm.step() is not None:
        pass
    return figure


look_at_one_step()

# %% [markdown]
"""
What does it cost? Five small copies, which are launched one by one in front of the graph. Against them stand the
launches that the graph saves:
"""

# %%
if cuda.is_emulated:
    print(f"5 copies, then 1 replay of {len(tape.kernels)} kernels")

# %% [markdown]
"""
## Common mistakes

Each of these is run on purpose, in the real engine with a real model. First the text as it should be, and a way to
compare:
"""

# %%
from collections.abc import Callable

expected = llm.generate(prompts, six)


def compare(mistake: str, copy_from: Callable, owner: object = buffer) -> None:
    """Run the prompts with another ``copy_from``, and say from which token on each text is wrong."""
    hook = "copy_from" if owner is buffer else "prepare_for_replay"
    llm.generate(prompts, six)  # what it leaves in the buffers is stale
    setattr(owner, hook, copy_from)
    try:
        broken = llm.generate(prompts, six)
    finally:
        delattr(owner, hook)  # the right one is back
    first = []
    for right, wrong in zip(expected, broken, strict=True):
        pairs = zip(right["token_ids"], wrong["token_ids"], strict=False)
        differs = [number for number, (a, b) in enumerate(pairs, 1) if a != b]
        first.append(str(differs[0]) if differs else "-")
    print(f"{mistake:26} first wrong token: {', '.join(first)}")
    texts[mistake] = [wrong["text"] for wrong in broken]


texts: dict[str, list[str]] = {}

# %% [markdown]
"""
### 1. Rebind instead of copy

The assignment of the first experiment, inside a class. It looks so much like `set_batch` that it is easily written:
"""


# %% tags=["nbval-check-output"]
def rebind_positions(batch: Batch) -> None:
    rows = slice(batch.padded_size)
    buffer.input_ids[rows].copy_(batch.input_ids)
    buffer.positions = batch.positions  # the mistake
    buffer.out_loc[rows].copy_(batch.out_loc)


recorded = buffer.positions
compare("positions rebound", rebind_positions)
buffer.positions = recorded

# %% [markdown]
"""
The first token comes from the prefill, which has no graph. Everything after it is computed with positions of an
earlier text.

### 2. Forget a field

Leave out each of the five in turn. All of them are silent, and they do not look alike:
"""


# %% tags=["nbval-check-output"]
def copy_all_but(forgotten: str) -> Callable[[Batch], None]:
    def copy_from(batch: Batch) -> None:
        for name in ("input_ids", "positions", "out_loc"):
            if name != forgotten:
                target = getattr(buffer, name)[: batch.padded_size]
                target.copy_(getattr(batch, name))

    return copy_from


def prepare_all_but(forgotten: str) -> Callable[[Batch], None]:
    def prepare_for_replay(batch: Batch) -> None:
        for name in ("page_table", "seq_lens"):
            if name != forgotten:
                target = getattr(attention.fixed, name)[: batch.padded_size]
                target.copy_(getattr(batch.attn_metadata, name))

    return prepare_for_replay


for name in ("input_ids", "positions", "out_loc"):
    compare(f"without {name}", copy_all_but(name))
for name in ("page_table", "seq_lens"):
    compare(f"without {name}", prepare_all_but(name), owner=attention)

# %%
for mistake, broken in texts.items():
    print(f"{mistake}:")
    for prompt, text in zip(prompts, broken, strict=True):
        print(f"    {prompt!r} -> {text!r}")

# %% [markdown]
"""
Some of these sentences read well, and one whole text is right: the keys that it lost happened not to matter.
**Reading the output is no test**; only a comparison with a run known to be right is one. Reports of this class: rope slots that were stale when an input was left out
(NVIDIA/TensorRT-LLM#18207), an attribute that was updated while the graph went on with the old one
(pytorch/pytorch#114844).

### 3. Copy the live rows only

Three requests are running, the graph has four rows. Why copy the fourth? Because it *runs*: it computes something and
writes a key and a value to `out_loc[3]`. If nobody refreshes that row, it still names the slot of a request that is
long gone. And the page of that slot may have a new owner.

Four requests; the last two end; then a newcomer arrives and takes over a page:
"""


# %% tags=["nbval-check-output"]
def evening(newcomer: str) -> str:
    """The newcomer's text. Four others are there before it, and two of them are gone when it comes."""

    def tokens(count: int) -> SamplingParams:
        return SamplingParams(max_tokens=count, ignore_eos=True)

    lengths = (20, 20, 5, 5)
    everybody = [*prompts, "Water boils at"]
    for prompt, count in zip(everybody, lengths, strict=True):
        llm.submit(prompt, tokens(count))
    for _ in range(5):
        llm.step()  # a prefill and four decode steps: the last two end
    handle = llm.submit(newcomer, tokens(12))
    while llm.step() is not None:
        pass
    return handle.text


def copy_live_rows(batch: Batch) -> None:
    rows = slice(batch.size)  # the mistake: not padded_size
    buffer.input_ids[rows].copy_(batch.input_ids[rows])
    buffer.positions[rows].copy_(batch.positions[rows])
    buffer.out_loc[rows].copy_(batch.out_loc[rows])


newcomer = "The capital of France is Paris. The capital of Italy is"
right = evening(newcomer)
buffer.copy_from = copy_live_rows
wrong = evening(newcomer)
del buffer.copy_from
print("right:", repr(right))
print("wrong:", repr(wrong))

# %% [markdown]
"""
The newcomer's request was copied faithfully in every step. It is wrong because a row that nobody asked for wrote over
one of its keys. Run it alone, and it is right; run it at batch 4, 2 or 1, where nothing is padded, and it is right.
This is the kind of fault that is reported as "sometimes garbled under load". nano-vllm (`bb823b3`) copies live rows
only and fills `slot_mapping` with -1 beforehand, which its kernel skips; in vLLM a slot of -1 once indexed the last
slot of the cache (vllm-project/vllm#43810).

### 4. Copy after the replay

Swap two lines, and each step reads what was meant for the step before:
"""

# %% tags=["nbval-check-output"]
copy_in_time = buffer.copy_from
late: list[Batch] = []


def copy_one_step_late(batch: Batch) -> None:
    """What the buffers hold at this replay is what the last step's copy brought."""
    if late:
        copy_in_time(late.pop())
    late.append(batch)


compare("copied after the replay", copy_one_step_late)

# %% [markdown]
"""
### 5. A buffer of the wrong type

`copy_` converts. It has to, and it says nothing, even where the new type cannot hold the value:
"""

# %% tags=["nbval-check-output"]
positions = torch.tensor([300, 2049, 40_000], device=DEVICE)
for dtype in (torch.int32, torch.float16, torch.int16, torch.uint8):
    fixed = torch.zeros(3, dtype=dtype, device=DEVICE).copy_(positions)
    print(f"{dtype!s:14} {[int(value) for value in fixed]}")

# %% [markdown]
"""
A buffer in float16, the model's own type, is right for every position up to 2048 and rounds to even numbers after
that. A test with short texts never sees it.

If the model wants another type than the buffer has, the recorded step holds a conversion kernel, and nothing
complains either. Where the types of buffer and batch can part, compare them once, at start.

### And what you read is fixed too

The logits are a view of the same kind of buffer. Keep them, and the next step replaces them under your hands:
"""

# %% tags=["nbval-check-output"]
llm.submit("The capital of France is", six)
llm.step()
llm.step()
view = buffer.logits[:1]
copied = view.clone()
llm.step()
print("the view still holds its step's logits:", torch.equal(view, copied))
while llm.step() is not None:
    pass

# %% [markdown]
"""
Sample before the next replay, or `clone()`.

## What a CPU cannot show here

On a GPU `copy_` returns before the copy is done. From ordinary host memory it waits; from pinned memory with
`non_blocking=True` it does not, and a host that writes the next step's values into the same pinned tensor too early
changes what is still being copied. An emulation on a CPU copies at once and cannot show this race.

## How to explain it, in three sentences

A graph reads addresses, not names, so new data must be written into the memory that it was recorded with. An engine
keeps one set of buffers for the largest batch, lets the recorded step read views of them, and copies every input of
every row into them before each replay, the padded rows included. What is not copied is what an earlier step left
there, of the right shape and type, and so nothing can object.

## Questions you may be asked

<details>
<summary>Why is assigning to <code>batch.positions</code> right in <code>set_batch</code> and wrong in <code>copy_from</code>?</summary>

Before the capture it decides which address gets recorded. After it, the address is frozen, and an assignment only
changes what Python looks at.

</details>

<details>
<summary>Could the graph not be told the new address instead?</summary>

CUDA can change parameters of an instantiated graph's kernels (`cudaGraphExecKernelNodeSetParams`), one node at a
time. A decode step reads its positions in every layer, so there would be many nodes to change; one small copy is
cheaper and simpler.

</details>

<details>
<summary>Why are the buffers made for the largest size, and not one set for each graph?</summary>

The graphs run one after the other, each after its own copy, so they can share. The logits are the reason to care: a
row of them has as many numbers as the vocabulary.

</details>

<details>
<summary>A colleague tests graphs with batches of 1, 2, 4 and 8, all of them recorded sizes. What is missed?</summary>

Everything about padded rows. Test 3 in a graph of 4, after a batch of 4 has left its values there.

</details>

<details>
<summary>How would you find a forgotten copy without reading the code?</summary>

Run the same step eagerly beside the replay and compare. Or fill the fixed buffers with impossible values before each
copy: what survives was not copied.

</details>

## Summary

- A graph reads addresses. `copy_` into the place; never assign to the name.
- A decode step has five inputs: ids, positions, slots, page-table rows, lengths.
- One set of buffers, for the largest size; each graph reads its first rows.
- Copy all rows up to `padded_size`, before the replay, into a buffer of the same type.
- What you read out is fixed as well.

## Exercises

Exercise 4, GraphCaptureBuffer, runs your `set_batch` and `copy_from` in the real engine, and judges it:
`exercises/ex04_fixed_buffers.ipynb`. And to find out by hand:

1. Write `copy_from` so that it fills the buffers with -1 first, and raises if a -1 is left after the copy. Which of
   the five mistakes does it find, and which not?
2. In mistake 3, let the newcomer's prompt be two tokens long. Is its text still wrong? Why does it depend on the
   offset?
3. Put `positions` and `out_loc` into one tensor of two rows, so that one copy brings both. What has to change in
   `set_batch`?
4. Repeat the first experiment without `kept`. What does the emulator compute, and why might a GPU compute something
   else?

## Further reading

- mini-sglang, `engine/graph.py`: the class of this chapter, under the same names.
- PyTorch's documentation, "CUDA semantics", the section on CUDA graphs: the same contract in its own words.
- The [references](../book/references.md) for the reports quoted here.
"""

# %%
llm.shutdown()
