# %% [markdown]
"""
# GraphRunner: pad, copy, replay

**Who this is for.** You know what a decode step is ([chapter 2](02_a_small_llm_engine.ipynb)) and want to see how an
engine decodes from graphs: which sizes it records, what it does before each replay, and where it goes wrong.

**After this chapter** you can follow one batch of three requests through a graph of four, name everything that has to
be copied first, and recognize the fault that a forgotten copy causes.

*About 40 minutes. Medium. You need chapter 2; no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. Graphs were recorded for 1, 2 and 4 requests. Three are running. What happens?
2. Which values of a batch have to be in fixed buffers before a replay? Which two of them belong to attention?
3. The logits of a step come back as a view of a fixed buffer. How long may you keep it?
4. A batch is larger than the largest recorded size. Is that an error?

**Answers.** 1: one dummy request is added, and the graph of 4 is replayed. 2: token ids, positions, cache slots,
page-table rows and lengths; the last two. 3: until the next replay, which overwrites it. 4: no, the step runs
eagerly, and somebody should be told.

</details>
"""

# %%
import warnings

from onelaunch import LLM, SamplingParams, viz

# %% [markdown]
"""
## Three requests, run as four

`cuda_graph_max_bs=4` asks for graphs of up to four requests. There is no GPU here, so we also say what stands in for
a graph: `graph="rerun"` is the simplest emulation there is. It does everything that an engine does around a graph,
with the real fixed buffers, and for the replay itself it runs the Python step again *on those buffers*. The end of
the chapter says what that shows and what it cannot.
"""

# %%
llm = LLM(
    "smollm2-135m",
    attention_backend="gather",
    cuda_graph_max_bs=4,
    graph="rerun",
    max_running_req=8,
    max_seq_len_override=256,
)
runner = llm.engine.runner

# %% tags=["nbval-check-output"]
print("recorded sizes:", runner.graph_bs_list)

prompts = ["My favourite animal is", "The sun rises in the", "A triangle has"]
six = SamplingParams(max_tokens=6)
answers = llm.generate(prompts, six)
for prompt, answer in zip(prompts, answers, strict=True):
    print(f"{prompt!r} -> {answer['text']!r}")
for (size, padded_size), times in runner.stats.steps.items():
    print(f"{times} decode steps: {size} requests, run as {padded_size}")

# %% [markdown]
"""
The first of the six tokens came from the prefill, which has no graph. The other five steps each had three requests
and were run with four rows. The text must be the one that the engine writes without graphs:
"""

# %% tags=["nbval-check-output"]
with LLM("smollm2-135m", max_seq_len_override=256) as eager:
    expected = eager.generate(prompts, six)
print("same text as without graphs:", answers == expected)

# %% [markdown]
"""
## What happens in one step

This is all of it. The runner's own code is as short, in `src/onelaunch/engine/graph.py`:

```python
runner.pad_batch(batch)               # 3 requests -> 4 rows, one a dummy
engine.prepare_batch(batch)           # this step's values, as new tensors
buffer.copy_from(batch)               # ids, positions, slots -> fixed buffers
backend.prepare_for_replay(batch)     # page-table rows, lengths -> fixed buffers
graph_map[batch.padded_size].replay() # the recorded step reads the fixed buffers
logits = buffer.logits[:batch.size]   # the dummy's row is cut off
```

**Padding comes first**, because everything after it is made for the padded rows. The dummy request brings harmless
values of its own: token 0 at position 0, length 1, and a slot in a page that no one else has.

**The fixed buffers are the contract.** The recording reads these addresses and no others. You can see that they stay
where they are while their values change ([chapter 6](06_fixed_buffers.ipynb) is about them):
"""

# %% tags=["nbval-check-output"]
buffer = runner.buffer
where = buffer.positions.data_ptr()
for prompt in prompts:
    llm.submit(prompt, SamplingParams(max_tokens=4, ignore_eos=True))
while (batch := llm.step()) is not None:
    if batch.is_decode:
        same = buffer.positions.data_ptr() == where
        print(f"positions {buffer.positions.tolist()}, same address: {same}")

# %% [markdown]
"""
The last row is the dummy's: position 0 in every step. Here is one step whole, with the lengths that attention reads
(its page-table rows are copied in the same way, [chapter 7](07_metadata_is_data.ipynb)):
"""

# %%
fixed = llm.engine.context.attn_backend.fixed


def needed(batch) -> dict[str, list[int]]:
    """What the step needs, by name."""
    return {
        "input_ids": batch.input_ids.tolist(),
        "positions": batch.positions.tolist(),
        "out_loc": batch.out_loc.tolist(),
        "seq_lens": batch.attn_metadata.seq_lens.tolist(),
    }


def found() -> dict[str, list[int]]:
    """What the graph finds in the fixed buffers."""
    return {
        "input_ids": buffer.input_ids.tolist(),
        "positions": buffer.positions.tolist(),
        "out_loc": buffer.out_loc.tolist(),
        "seq_lens": fixed.seq_lens.tolist(),
    }


def look_at_one_step() -> viz.Figure:
    """The first decode step of the three prompts; then they run to their end."""
    for prompt in prompts:
        llm.submit(prompt, six)
    llm.step()  # the prefill
    batch = llm.step()
    figure = viz.fixed_buffers(needed(batch), found(), live=batch.size)
    while llm.step() is not None:
        pass
    return figure


look_at_one_step()

# %% [markdown]
"""

## Forget one copy

Now the mistake that this book is about. `copy_from` brings over three tensors. We write one that brings over two, and
leaves `positions` out.
"""


# %% tags=["nbval-check-output"]
def copy_all_but_positions(batch) -> None:
    rows = slice(batch.padded_size)
    buffer.input_ids[rows].copy_(batch.input_ids)
    buffer.out_loc[rows].copy_(batch.out_loc)


llm.generate(prompts, six)  # the last replay before the mistake
buffer.copy_from = copy_all_but_positions
wrong = llm.generate(prompts, six)
del buffer.copy_from  # the right one is back

for right, broken in zip(expected, wrong, strict=True):
    pairs = zip(right["token_ids"], broken["token_ids"], strict=True)
    marks = "".join("." if a == b else "X" for a, b in pairs)
    print(f"{marks}  {right['text']!r} became {broken['text']!r}")

# %% [markdown]
"""
A dot is a token that is right. The first one is, since the prefill does not use the graph. From the second on the
texts part. Nothing was raised, nothing was logged, and the shapes were all correct. On a GPU it is just as quiet.

Here is one such step, as the graph sees it:
"""

# %%
buffer.copy_from = copy_all_but_positions
figure = look_at_one_step()
del buffer.copy_from
figure

# %% [markdown]
"""
Public reports of it: rope slots that stayed stale when an input was left out (NVIDIA/TensorRT-LLM#18207), an
attribute that the graph never saw updated (pytorch/pytorch#114844; [both](../book/references.md)).

## A batch that is too large

Six requests do not fit into a graph of four. The step runs eagerly, and the engine says so once:
"""

# %% tags=["nbval-check-output"]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    llm.generate(prompts + prompts, six)
print(len(said), "warning:", str(said[0].message).split(":")[0])
print("eager steps:", runner.stats.eager_fallbacks)

# %% [markdown]
"""
A silent fallback is the other fault that costs people days: the text is right, and the service is several times
slower than it was tuned to be (vllm-project/vllm-ascend#16049 reports 7.5 times). Count the fallbacks, and look at
the count.

## Which sizes to record

With few sizes, many rows are padding. With many, the start takes longer and memory goes to graphs instead of the KV
cache. The rule here is mini-sglang's, except that a ceiling which the rule would miss is recorded too
([chapter 8](08_padding.ipynb) compares the lists of five engines):
"""

# %% tags=["nbval-check-output"]
from onelaunch.padding import capture_sizes, padded_size

for ceiling in (3, 4, 20, 32):
    print(ceiling, capture_sizes(ceiling))
sizes = capture_sizes(160)
wasted = padded_size(37, sizes) - 37
print(f"37 requests run as {padded_size(37, sizes)}: {wasted} rows are padding")

# %% [markdown]
"""
## What this emulation shows, and what it cannot

`graph="rerun"` runs Python again at every replay. So it shows each fault of the *buffers*: a copy that was forgotten,
padding that leaks, an output kept too long. It cannot show the faults of a *recording*: a number that Python computed
once and that is now frozen, a branch that was taken at capture time, an operation that a capture refuses. For those
the kernels themselves have to be recorded. [Chapter 10](10_a_graph_on_a_cpu.ipynb) runs eleven faults on both.

## The same with a recording

`graph="tape"` does that, on a CPU: it writes down every kernel of the step with its addresses and its frozen numbers,
and a replay runs that list and no Python of the model. The runner's code is the same; it is also the code for a GPU,
where PyTorch's own `torch.cuda` takes the place of the tape.
"""

# %%
taped = LLM(
    "smollm2-135m",
    device="cpu",
    cuda_graph_max_bs=4,
    graph="tape",
    max_running_req=8,
    max_seq_len_override=256,
)

# %% tags=["nbval-check-output"]
calls = []
taped.engine.model.register_forward_pre_hook(lambda *args: calls.append("call"))
answers = taped.generate(prompts, six)
print("same text as without graphs:", answers == expected)
print("the model's code ran", len(calls), "time, for six tokens")

# %% [markdown]
"""
Once, for the prefill. The other five tokens came from the tape. This is what it holds for four requests:
"""

# %%
print(taped.engine.runner.graph_map[4].tape.summary())

# %% [markdown]
"""
A tape refuses what a GPU refuses. The reference attention of chapter 2 asks the device for every length, so the
engine says that it cannot be captured, and runs eagerly:
"""

# %% tags=["nbval-check-output"]
taped.shutdown()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    refused = LLM(
        "random:llama", cuda_graph_max_bs=4, attention_backend="torch"
    )
print(str(said[0].message).split(". Use")[0])
refused.shutdown()

# %% [markdown]
"""
A replay leaves out the model's Python, so it takes less time than the step, on a CPU too, where the kernels are short.
[Chapter 10](10_a_graph_on_a_cpu.ipynb) measures by how much. What a GPU gains is another question.

## Common mistakes

- **Preparing the batch before padding it.** The buffers' last rows then keep what an earlier, larger batch left
  there.
- **Keeping the logits.** They are a view of the fixed buffer. Sample from them, or clone them, before the next step.
- **Padding with a real request's page.** The padded row writes its key somewhere. If that is a page in use, it
  destroys a token.
- **Testing with batch sizes that were recorded.** Without padding, a fault in the padded rows never shows. Test 3
  with a graph of 4.

## How to explain it, in three sentences

The runner records a decode step for a few batch sizes, all of them reading the same fixed buffers. Before each step
it pads the batch with dummy requests to the next recorded size, copies every input and the attention metadata into
the buffers, and replays. Whatever it does not copy keeps its old value, so the step computes a wrong answer without
noticing.

## Questions you may be asked

<details>
<summary>Why does the dummy request need a page of its own?</summary>

A row of the graph always writes a key and a value. The dummy's must go where nobody reads. Other engines let it write
to slot 0, which they never hand out, or give it the slot -1, which their kernel skips.

</details>

<details>
<summary>Why are the largest graphs recorded first?</summary>

They share one memory pool. The largest step needs the most; each smaller one then fits into what is already there.

</details>

<details>
<summary>Why is prefill not replayed from a graph?</summary>

Its shape is the prompt's length, so there would have to be a graph for every length, and its kernels are long enough
that the host is not what it waits for.

</details>

<details>
<summary>The page table of a request grows while it decodes. Why does the graph not have to change?</summary>

The graph reads a row of fixed width, and a length. Which pages the row names, and how many of its tokens count, are
values, not shapes.

</details>

## Summary

- Pad, prepare, copy, replay, slice: in this order, at every step.
- Five things are copied: token ids, positions, slots, page-table rows, lengths.
- What is forgotten is stale, and stale is silent.
- Above the largest size the step runs eagerly; count it.

## Exercises

Exercise 7, Dispatch and replay, runs your dispatch and your `replay` in the real engine, and judges it:
`exercises/ex07_dispatch_and_replay.ipynb`. And to find out by hand:

1. Leave out `out_loc` and `positions` at once. Is the text wrong from an earlier token on than with one of them?
2. Leave out `backend.prepare_for_replay`. What does attention see?
3. Run five requests with `cuda_graph_bs=[2, 6]`. Which graphs are used as they finish one after the other?
4. Repeat the forgotten copy with `graph="tape"`. Is the wrong text the same as with `"rerun"`?

## Further reading

- mini-sglang, `engine/graph.py`: the names of this chapter in an engine for GPUs.
- nano-vllm, `model_runner.py`: the same in one screen.
- The [references](../book/references.md) for the figures and reports quoted here.
"""

# %%
llm.shutdown()
