# %% [markdown]
"""
# The museum of silent bugs

**Who this is for.** You have written capture code, or run an engine that has some, and the answers are now and then
wrong. Nothing was raised. You want to know which tensor it is.

**After this chapter** you can name the ways in which a replay goes wrong without a word, find each of them on a machine
without a GPU, and say which ones no such tool can find.

*About 60 minutes, or as long as you like: it is a museum. Medium. You need [chapter 6](06_fixed_buffers.ipynb) for what
fixed buffers are and [chapter 9](09_graph_runner.ipynb) for the engine's graphs; no GPU.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. Weights are loaded into new tensors after the capture. Name the two things that can happen, and when each does.
2. A kernel gets the longest length of the batch as a Python number. Why does nothing complain, and what is computed?
3. Padded rows hold NaN, and nobody reads their results. Name two ways in which they still reach live rows.
4. Why is running the step eagerly beside the replay a better test than reading the text?
5. Name three faults of graphs that running eagerly beside the replay cannot show.

**Answers.** 1: the old memory is still there: old weights, silently; it was given away: somebody else's numbers, or an
illegal access. 2: the number is an argument like any other and was right when it was recorded; every replay attends as
far as the first batch did. 3: a sum, a maximum or a scale over all rows; zero times NaN under a mask; a slot that they
write to. 4: most wrong texts read well, and some are right by luck. 5: races between streams or with the host, what the
driver and its memory do, kernels outside PyTorch; any three.

</details>
"""

# %%
import contextlib
import gc
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import nn

from onelaunch import LLM, SamplingParams, museum, viz
from onelaunch import emulator as cuda
from onelaunch.museum import Case
from onelaunch.sanitizer import FindingsError

# %% [markdown]
"""
Everything here runs on the emulator, on a machine with a GPU too: a museum has to show what is broken, and a broken
graph on a GPU may take the whole process with it.

## Right, then wrong, and not a word

An engine with a real model, three prompts, decode steps from a graph of four rows. First as it should be:
"""

# %%
llm = LLM(
    "smollm2-135m",
    device="cpu",
    graph="tape",
    cuda_graph_bs=[4],
    max_running_req=4,
    max_seq_len_override=64,
)

# %% tags=["nbval-check-output"]
prompts = ["My favourite animal is", "The sun rises in the", "A triangle has"]
six = SamplingParams(max_tokens=6)
expected = llm.generate(prompts, six)
for prompt, answer in zip(prompts, expected, strict=True):
    print(f"{prompt!r} -> {answer['text']!r}")

# %% [markdown]
"""
Before each replay the runner copies three tensors into the memory that the graph reads. Now somebody edits that function
and forgets one of them. The other two are copied as before:
"""


# %% tags=["nbval-check-output"]
def all_but_positions(batch) -> None:
    rows = slice(batch.padded_size)
    buffer.input_ids[rows].copy_(batch.input_ids)
    buffer.out_loc[rows].copy_(batch.out_loc)


buffer = llm.engine.runner.buffer
buffer.copy_from = all_but_positions
wrong = llm.generate(prompts, six)
del buffer.copy_from
for prompt, answer, right in zip(prompts, wrong, expected, strict=True):
    pairs = zip(answer["token_ids"], right["token_ids"], strict=False)
    first = next(n for n, (a, b) in enumerate(pairs, 1) if a != b)
    print(f"{prompt!r} -> {answer['text']!r}, wrong from token {first}")

# %% [markdown]
"""
The first token of each answer is right, because the prefill has no graph. From the second on the model believes that it
reads a word at a position of an earlier text. There is no error, no warning, no NaN, and the text is made of words.

The same engine, the same forgetful function, and one more argument:
"""

# %%
llm.shutdown()
careful = LLM(
    "smollm2-135m",
    device="cpu",
    graph="tape",
    cuda_graph_bs=[4],
    max_running_req=4,
    max_seq_len_override=64,
    sanitize=True,
)

# %% tags=["nbval-check-output"]
same = careful.generate(prompts, six) == expected
print("as it should be, nothing found, the same texts:", same)
buffer = careful.engine.runner.buffer
buffer.copy_from = all_but_positions
try:
    careful.generate(prompts, six)
except FindingsError as error:
    report = error.report
for finding in report:
    print(f"{finding.kind} of {finding.tensor}")
    print("why:", finding.why)
    print("fix:", finding.fix)

# %% [markdown]
"""
That is the tensor that was forgotten, and the line that mends it. `generate` raised *before* the replay, so no wrong token
was made. As a report in a notebook it also has the line of the model that read the stale memory first:
"""

# %%
report

# %% [markdown]
"""
## How a finding is found

The [sanitizer](../book/glossary.md#sanitizer), `onelaunch.sanitize(prepare, step)`, needs no idea of what your step does.
`prepare(i)` is your host code before step `i`, `step()` is what you capture:

1. It runs `prepare(0)`, warms up once, and captures.
2. Then, round after round, `prepare(i)`. From the same state it **replays**, and it **runs the step's Python** while
   writing down what that does: a second tape.
3. Where results differ, the two tapes are laid side by side, and the first difference says what happened: another number
   in an argument, another list of kernels, another address, or the same address with other contents.
4. Whoever owns that memory says what it is called.

So a finding is not a guess from a pattern in your code. It is a difference that was there, and its cause:

| finding | what was found |
|---|---|
| `stale-input` | the memory that the graph reads is where it was, and does not hold what eager reads |
| `moved-address` | the owner's tensor lies elsewhere now |
| `freed-address` | the memory that the graph reads has no owner any more |
| `overwritten-output` | an output was kept, and a later replay changed it |
| `frozen-value` | a number of Python's is another one by now |
| `frozen-branch` | eager runs other kernels by now |
| `padding-leak` | live rows change when declared padding does |
| `lazy-init-recorded` | what only the first run does is in the graph |
| `host-sync`, `host-data`, `dynamic-shape`, `unregistered-rng`, `unjoined-stream` | a capture refuses it |
| `pool-growth` | the memory of graphs grows from round to round |
| `silent-eager` | work that should have been replayed ran eagerly |

## The gallery

Each exhibit is a public report, named by repository and number, and its mechanism in a few lines that were written for
this book. The lines are *ours*: they show how such a thing happens, not how that project looks. Each cell prints

- **right**: what the caller sees, round by round, without a graph and without the fault;
- **graph**: what the caller sees with the fault and a graph, or the error;
- **broken**, **mended**: what the sanitizer says of both.

Where the first two agree, what is wrong is memory, or work that every replay repeats. A value of -1 or an error may stand
for what would be a process that waits. Change the code of a cell and run it again: each one stands for itself.
"""

# %% id="gallery"
museum.Gallery(museum.exhibits())

# %% [markdown]
"""
### Stale input
"""

# %% [markdown]
"""
#### Columns of an earlier batch

*silent on a GPU*, [GeeeekExplorer/nano-vllm#190](https://github.com/GeeeekExplorer/nano-vllm/issues/190)

The report names it in passing: the table of pages is used again from step to step, and a copy that
is narrower than the one before leaves the old columns behind.

**The mend.** Clear the fixed table to 'no page' before each copy.
"""


# %% id="nano-vllm-190-columns" tags=["nbval-check-output"]
def build(clear: bool) -> Case:
    fixed = SimpleNamespace(table=torch.full((1, 3), -1))
    batch = SimpleNamespace()
    cache = torch.tensor([1.0, 10.0, 100.0, 1000.0, 0.0])  # the last is empty

    def prepare(i: int) -> None:
        pages = [[0, 1], [0, 1, 2], [3], [1, 3]][i]
        if clear:
            fixed.table.fill_(-1)
        fixed.table[0, : len(pages)].copy_(torch.tensor(pages))
        table = torch.full((1, 3), -1)
        table[0, : len(pages)] = torch.tensor(pages)
        batch.table = table if i else fixed.table

    def step() -> torch.Tensor:
        return cache[batch.table].sum(1)  # -1 is the last

    return Case(prepare, step, owners={"batch": batch, "fixed": fixed})


def broken() -> Case:
    return build(clear=False)


def mended() -> Case:
    return build(clear=True)


museum.exhibit("nano-vllm-190-columns").compare(broken, mended)

# %% [markdown]
"""
#### An attribute gets a new tensor

*silent on a GPU*, [pytorch/pytorch#114844](https://github.com/pytorch/pytorch/issues/114844)

A model keeps a tensor in an attribute. Eagerly each run works with the tensor that is there; a
replay always works with the one that was there at capture.

**The mend.** Write into the tensor that was recorded: copy_, not an assignment.
"""


# %% id="pytorch-114844" tags=["nbval-check-output"]
def build(assign: bool) -> Case:
    model = SimpleNamespace(x=torch.ones(2), scale=torch.full((2,), 3.0))
    first = model.x

    def prepare(i: int) -> None:
        new = torch.full((2,), 1.0 + i)
        if assign:
            model.x = new if i else first
        else:
            model.x.copy_(new)

    def step() -> torch.Tensor:
        return model.x * model.scale

    return Case(prepare, step, owners={"model": model})


def broken() -> Case:
    return build(assign=True)


def mended() -> Case:
    return build(assign=False)


museum.exhibit("pytorch-114844").compare(broken, mended)

# %% [markdown]
"""
#### A second set of metadata is forgotten

*silent on a GPU*, [sgl-project/sglang#6162](https://github.com/sgl-project/sglang/issues/6162)

Llama 4 has layers that look at a local window, with metadata of their own. The graph did not bring
them up to date. Short texts were right; beyond 8,192 tokens came gibberish.

**The mend.** Every table that a layer reads has a fixed buffer and is copied before each replay.
"""


# %% id="sglang-6162" tags=["nbval-check-output"]
def build(names: tuple[str, ...]) -> Case:
    fixed = SimpleNamespace(table=torch.zeros(2), local_table=torch.zeros(2))
    meta = SimpleNamespace()
    cache = torch.arange(8.0)

    def prepare(i: int) -> None:
        first = max(0, i - 1)  # the window begins to move at i = 2
        fresh = {
            "table": torch.tensor([i, i + 1]),
            "local_table": torch.tensor([first, first + 1]),
        }
        for name in names:
            getattr(fixed, name).copy_(fresh[name])
        if i == 0:
            fresh = {name: value.long() for name, value in vars(fixed).items()}
            fixed.__dict__.update(fresh)
        meta.__dict__.update(fresh)

    def step() -> torch.Tensor:
        return cache[meta.table] + 10 * cache[meta.local_table]

    return Case(prepare, step, owners={"meta": meta, "fixed": fixed})


def broken() -> Case:
    return build(("table",))


def mended() -> Case:
    return build(("table", "local_table"))


museum.exhibit("sglang-6162").compare(broken, mended)

# %% [markdown]
"""
#### An optional input is left out

*silent on a GPU*, [NVIDIA/TensorRT-LLM#18207](https://github.com/NVIDIA/TensorRT-LLM/issues/18207)

Requests with pictures bring slots for their positions. A batch of text alone brought none, so
nothing was copied, and the graph went on with the slots of an earlier batch.

**The mend.** What a batch leaves out is filled with what its absence means, at every step.
"""


# %% id="tensorrt-llm-18207" tags=["nbval-check-output"]
def build(fill: bool) -> Case:
    fixed = SimpleNamespace(tokens=torch.zeros(2), slots=torch.zeros(2))
    batch = SimpleNamespace()

    def prepare(i: int) -> None:
        fresh = {"tokens": torch.tensor([1.0, 2.0]) + i}
        if i == 1:  # the only batch with a picture
            fresh["slots"] = torch.tensor([7.0, 0.0])
        for name, value in fresh.items():
            getattr(fixed, name).copy_(value)
        if fill and "slots" not in fresh:
            fixed.slots.zero_()
        fresh.setdefault("slots", torch.zeros(2))
        batch.__dict__.update(vars(fixed) if i == 0 else fresh)

    def step() -> torch.Tensor:
        return batch.tokens + 100 * batch.slots

    return Case(prepare, step, owners={"batch": batch, "fixed": fixed})


def broken() -> Case:
    return build(fill=False)


def mended() -> Case:
    return build(fill=True)


museum.exhibit("tensorrt-llm-18207").compare(broken, mended)

# %% [markdown]
"""
#### Metadata for 100 of 112 rows

*loud on a GPU*, [xLLM-AI/xllm#1939](https://github.com/xLLM-AI/xllm/issues/1939)

A batch of 100 requests ran in a graph of 112 rows. The attention's metadata described 100, so the
last 12 rows worked with what was left there, and the replay ended with an illegal memory access.

**The mend.** Metadata are made for the padded size: a padded row is an empty request.
"""


# %% id="xllm-1939" tags=["nbval-check-output"]
def build(pad: bool) -> Case:
    fixed = SimpleNamespace(kv_lens=torch.zeros(4))
    batch = SimpleNamespace()

    def prepare(i: int) -> None:
        live = [4, 4, 3, 2][i]
        lens = torch.tensor([5.0, 6.0, 7.0, 8.0])
        lens[live:] = 0.0  # a padded row is an empty request
        rows = 4 if pad else live
        fixed.kv_lens[:rows].copy_(lens[:rows])
        batch.kv_lens = lens if i else fixed.kv_lens

    def step() -> torch.Tensor:
        return batch.kv_lens / batch.kv_lens.sum()

    def read(share: torch.Tensor) -> torch.Tensor:
        return share[:2]

    owners = {"batch": batch, "fixed": fixed}
    return Case(prepare, step, owners=owners, read=read)


def broken() -> Case:
    return build(pad=False)


def mended() -> Case:
    return build(pad=True)


museum.exhibit("xllm-1939").compare(broken, mended)

# %% [markdown]
"""
### Moved or freed address
"""

# %% [markdown]
"""
#### A new prompt, a new buffer

*silent on a GPU*, [jcelerier/librediffusion#14](https://github.com/jcelerier/librediffusion/issues/14)

All was well until a parameter was changed while the program ran; then the picture broke, or did not
change. At random, since the allocator sometimes gave the same address again.

**The mend.** Setters write into the buffer that there is.
"""


# %% id="librediffusion-14" tags=["nbval-check-output"]
def build(allocate: bool) -> Case:
    pipeline = SimpleNamespace(prompt=torch.zeros(2), noise=torch.ones(2))

    def set_prompt(values: list[float]) -> None:
        if allocate:
            pipeline.prompt = torch.tensor(values)
        else:
            pipeline.prompt.copy_(torch.tensor(values))

    def prepare(i: int) -> None:
        if i == 2:  # the user types something else
            set_prompt([5.0, 6.0])
        elif i == 0:
            pipeline.prompt.copy_(torch.tensor([1.0, 2.0]))

    def step() -> torch.Tensor:
        return pipeline.prompt + pipeline.noise

    return Case(prepare, step, owners={"pipeline": pipeline})


def broken() -> Case:
    return build(allocate=True)


def mended() -> Case:
    return build(allocate=False)


museum.exhibit("librediffusion-14").compare(broken, mended)

# %% [markdown]
"""
#### The source of a copy lay on the stack

*silent on a GPU*, [PaddlePaddle/Paddle#78568](https://github.com/PaddlePaddle/Paddle/issues/78568)

Kernels copied small tables from local variables of the host to the device. The graph recorded the
address of the variable, and replayed the copy after the function had returned. 33 files were
mended.

**The mend.** The source lives as long as the graph, at one address, and is filled anew.
"""


# %% id="paddle-78568" tags=["nbval-check-output"]
def build(keep: bool) -> Case:
    shape, source = torch.zeros(2), torch.zeros(2)
    stack: dict[str, torch.Tensor] = {}

    def call(i: int) -> None:
        stack.clear()  # the variables of the call before are gone
        stack[f"call {i}"] = torch.tensor([1.0, 2.0]) * (1 + i)

    def prepare(i: int) -> None:
        call(i)
        source.copy_(stack[f"call {i}"])

    def step() -> torch.Tensor:
        (local,) = stack.values()
        shape.copy_(source if keep else local)
        return shape * 10

    return Case(prepare, step, owners={"stack": stack, "source": source})


def broken() -> Case:
    return build(keep=False)


def mended() -> Case:
    return build(keep=True)


museum.exhibit("paddle-78568").compare(broken, mended)

# %% [markdown]
"""
#### The page table of another request

*silent on a GPU*, [gittensor-ai-lab/sparkinfer#147](https://github.com/gittensor-ai-lab/sparkinfer/issues/147), [gittensor-ai-lab/sparkinfer#150](https://github.com/gittensor-ai-lab/sparkinfer/issues/150)

The graph was recorded for the first request and held the address of its row in the page table. When
that request ended the row went to others, and the graph still read it.

**The mend.** The row is copied into a fixed tensor before each replay, or the graph goes with the
request.
"""


# %% id="sparkinfer-147" tags=["nbval-check-output"]
def build(own_row: bool) -> Case:
    tables = torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7]])
    cache = torch.arange(8.0)
    request = SimpleNamespace(row=torch.zeros(2, dtype=torch.int64))
    if not own_row:
        request.row = tables[0]

    def prepare(i: int) -> None:
        if own_row:
            request.row.copy_(tables[i])
        else:
            request.row = tables[i]  # the next request's row

    def step() -> torch.Tensor:
        return cache[request.row]

    return Case(prepare, step, owners={"request": request})


def broken() -> Case:
    return build(own_row=False)


def mended() -> Case:
    return build(own_row=True)


museum.exhibit("sparkinfer-147").compare(broken, mended)

# %% [markdown]
"""
#### A dummy step in the middle of waking up

*loud on a GPU*, [vllm-project/vllm#44395](https://github.com/vllm-project/vllm/issues/44395)

A server was woken in stages, first its weights, then its KV cache. Between the two a rank without
requests ran a dummy step to keep pace with the others, and read memory that had been given back.

**The mend.** No replay before everything that the graph reads is there again.
"""


# %% id="vllm-44395" tags=["nbval-check-output"]
def build(awake: bool) -> Case:
    engine = SimpleNamespace(q=torch.zeros(3), caches={"kv": torch.ones(3)})
    nothing = torch.zeros(3)

    def prepare(i: int) -> None:
        engine.q.fill_(1.0 + i)
        if i == 2 and not awake:
            del engine.caches["kv"]  # asleep; the weights are back already

    def step() -> torch.Tensor:
        return engine.q * engine.caches.get("kv", nothing)

    owners = {"engine": engine, "nothing": nothing}
    return Case(prepare, step, owners=owners, check_liveness=True)


def broken() -> Case:
    return build(awake=False)


def mended() -> Case:
    return build(awake=True)


museum.exhibit("vllm-44395").compare(broken, mended)

# %% [markdown]
"""
#### The weights stayed, what was made from them moved

*silent on a GPU*, [vllm-project/vllm#48478](https://github.com/vllm-project/vllm/issues/48478), [vllm-project/vllm#48251](https://github.com/vllm-project/vllm/issues/48251)

The parameters were copied in place, as they should be. But quantization and MLA make further
tensors from them after each load (workspaces, sort indices, transposed weights), and these were new
ones.

**The mend.** What is derived at load time is copied into the tensor of the first load.
"""


# %% id="vllm-48478" tags=["nbval-check-output"]
def build(in_place: bool) -> Case:
    layer = SimpleNamespace(weight=torch.zeros(2, 2), w_uv=torch.zeros(2, 2))
    x = torch.ones(1, 2)

    def prepare(i: int) -> None:
        layer.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]) * (1 + i))
        derived = layer.weight.t().contiguous()  # after loading
        if i == 0 or in_place:
            layer.w_uv.copy_(derived)
        else:
            layer.w_uv = derived

    def step() -> torch.Tensor:
        return x @ layer.w_uv

    return Case(prepare, step, owners={"layer": layer})


def broken() -> Case:
    return build(in_place=False)


def mended() -> Case:
    return build(in_place=True)


museum.exhibit("vllm-48478").compare(broken, mended)

# %% [markdown]
"""
#### Weights are loaded again

*silent on a GPU*, [vllm-project/vllm#48941](https://github.com/vllm-project/vllm/issues/48941), [vllm-project/vllm#48312](https://github.com/vllm-project/vllm/issues/48312)

In reinforcement learning the weights change while the server runs. Where a layer got new tensors
instead of new values, captured graphs went on with the old addresses: old weights, somebody else's
data, or an illegal access.

**The mend.** Loading copies into the parameters that were captured.
"""


# %% id="vllm-48941" tags=["nbval-check-output"]
def build(in_place: bool) -> Case:
    model = nn.Linear(2, 2, bias=False)
    model.requires_grad_(False)
    x, shelf = torch.ones(1, 2), []

    def prepare(i: int) -> None:
        loaded = torch.full((2, 2), 1.0 + i)  # what the trainer sent
        if i == 0 or in_place:
            model.weight.copy_(loaded)
        else:
            shelf.append(model.weight.data)  # somebody still has them
            model.weight.data = loaded

    def step() -> torch.Tensor:
        return model(x)

    return Case(prepare, step, owners={"model": model})


def broken() -> Case:
    return build(in_place=False)


def mended() -> Case:
    return build(in_place=True)


museum.exhibit("vllm-48941").compare(broken, mended)

# %% [markdown]
"""
#### Sleep and wake

*loud on a GPU*, [vllm-project/vllm#55013](https://github.com/vllm-project/vllm/issues/55013)

A server with a draft model was put to sleep at level 2 and woken. The first request after that died
in the replay of the draft's graph with an illegal memory access.

**The mend.** Whatever a graph reads comes back at the same address, or the graph is recorded again.
"""


# %% id="vllm-55013" tags=["nbval-check-output"]
def build(same_memory: bool) -> Case:
    engine = SimpleNamespace(cache=torch.zeros(3), q=torch.zeros(3))

    def prepare(i: int) -> None:
        engine.q.fill_(1.0 + i)
        if i == 2 and not same_memory:  # sleep, then wake up
            engine.cache = None
            engine.cache = torch.zeros(3)
        engine.cache.fill_(10.0 if i < 2 else 20.0)

    def step() -> torch.Tensor:
        return engine.q * engine.cache

    return Case(prepare, step, owners={"engine": engine})


def broken() -> Case:
    return build(same_memory=False)


def mended() -> Case:
    return build(same_memory=True)


museum.exhibit("vllm-55013").compare(broken, mended)

# %% [markdown]
"""
### Output overwritten
"""

# %% [markdown]
"""
#### Results of several steps are kept

*loud on a GPU*, [pytorch/pytorch#148439](https://github.com/pytorch/pytorch/issues/148439), [pytorch/pytorch#170604](https://github.com/pytorch/pytorch/issues/170604)

torch.compile with graphs stopped with 'accessing tensor output of CUDAGraphs that has been
overwritten by a subsequent run'. It watches its outputs; a graph of your own does not, and the
values are simply those of the last run.

**The mend.** clone() what outlives the next replay.
"""


# %% id="pytorch-148439" tags=["nbval-check-output"]
def build(copy: bool) -> Case:
    state = SimpleNamespace(x=torch.zeros(2), logits=None, kept={})
    best = torch.zeros(2)

    def prepare(i: int) -> None:
        if i > 1:  # keep what the last step gave
            logits = state.logits.clone() if copy else state.logits
            state.kept[f"step {i - 1}"] = logits
            best.copy_(torch.stack(list(state.kept.values())).amax(0))
        rows = [[0.0, 0.0], [9.0, 1.0], [2.0, 8.0], [3.0, 3.0]]
        state.x.copy_(torch.tensor(rows[i]))

    def step() -> torch.Tensor:
        state.logits = state.x * 10
        return state.logits

    def read(logits: torch.Tensor) -> torch.Tensor:
        return best

    owners = {"state": state, "best": best}
    return Case(prepare, step, owners=owners, read=read)


def broken() -> Case:
    return build(copy=False)


def mended() -> Case:
    return build(copy=True)


museum.exhibit("pytorch-148439").compare(broken, mended)

# %% [markdown]
"""
#### A cache that grows by concatenation

*loud on a GPU*, [pytorch/pytorch#175557](https://github.com/pytorch/pytorch/issues/175557), [pytorch/pytorch#154824](https://github.com/pytorch/pytorch/issues/154824)

A decoder appended each step's keys to its cache with torch.cat. Under graphs it stopped at the
second step: the pieces were outputs of earlier runs, whose memory had been taken back.

**The mend.** Write into a cache that was allocated once, or clone each piece.
"""


# %% id="pytorch-175557" tags=["nbval-check-output"]
def build(copy: bool) -> Case:
    state = SimpleNamespace(x=torch.zeros(1), keys=None, pieces={})
    total = torch.zeros(1)

    def prepare(i: int) -> None:
        if i > 1:
            keys = state.keys
            state.pieces[i - 1] = keys.clone() if copy else keys
            total.copy_(torch.cat(list(state.pieces.values())).sum()[None])
        state.x.fill_(10.0**i)

    def step() -> torch.Tensor:
        state.keys = state.x * 2
        return state.keys + total

    return Case(prepare, step, owners={"state": state, "total": total})


def broken() -> Case:
    return build(copy=False)


def mended() -> Case:
    return build(copy=True)


museum.exhibit("pytorch-175557").compare(broken, mended)

# %% [markdown]
"""
#### The difference of two steps is zero

*silent on a GPU*, [sgl-project/sglang#31852](https://github.com/sgl-project/sglang/issues/31852)

A review asked for the outputs of a graph of a diffusion model to be copied. The first attempt
copied plain tensors, and an output object with tensors inside went through as it was.

**The mend.** Copy every tensor of the output, however it is nested.
"""


# %% id="sglang-31852-output" tags=["nbval-check-output"]
def build(copy: bool) -> Case:
    state = SimpleNamespace(noise=torch.zeros(2), out=(), before=[])
    change = torch.zeros(2)

    def prepare(i: int) -> None:
        if i > 2:
            change.copy_(state.out[0] - state.before[0])
        if i > 1:
            state.before = list(state.out)
            if copy:
                state.before = [part.clone() for part in state.out]
        state.noise.fill_(2.0**i)

    def step() -> tuple[torch.Tensor, torch.Tensor]:
        state.out = state.noise + 1, state.noise * 3
        return state.out

    def read(out: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return change

    owners = {"state": state, "change": change}
    return Case(prepare, step, owners=owners, read=read)


def broken() -> Case:
    return build(copy=False)


def mended() -> Case:
    return build(copy=True)


museum.exhibit("sglang-31852-output").compare(broken, mended)

# %% [markdown]
"""
### Forbidden in capture
"""

# %% [markdown]
"""
#### .item() in the step

*loud on a GPU*, [Lightning-AI/lightning-thunder#727](https://github.com/Lightning-AI/lightning-thunder/issues/727)

A compiled function that called .item() could not be captured.

**The mend.** Leave the number on the device: a tensor with one element divides as well.
"""


# %% id="lightning-thunder-727" tags=["nbval-check-output"]
def build(ask: bool) -> Case:
    x = torch.zeros(2)

    def prepare(i: int) -> None:
        x.copy_(torch.tensor([1.0 + i, -1.0]))

    def step() -> torch.Tensor:
        if ask:
            return x / x.max().item()
        return x / x.max()

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(ask=True)


def mended() -> Case:
    return build(ask=False)


museum.exhibit("lightning-thunder-727").compare(broken, mended)

# %% [markdown]
"""
#### torch.unique has to wait

*loud on a GPU*, [pytorch/pytorch#196133](https://github.com/pytorch/pytorch/issues/196133)

torch.unique makes the host wait for the device. Beside the replay of a graph with a collective that
wait could stall a whole job. Inside of a capture it is refused at once.

**The mend.** A flag for each possible value has a fixed shape.
"""


# %% id="pytorch-196133" tags=["nbval-check-output"]
def build(shape_from_data: bool) -> Case:
    experts = torch.zeros(4, dtype=torch.int64)

    def prepare(i: int) -> None:
        experts.copy_(torch.tensor([[0, 1, 2, 2], [1, 1, 1, 1]][i % 2]))

    def step() -> torch.Tensor:
        if shape_from_data:
            return torch.unique(experts)
        used = torch.zeros(3, dtype=torch.int64)
        return used.index_fill(0, experts, 1)  # a flag for each expert

    return Case(prepare, step, owners={"experts": experts})


def broken() -> Case:
    return build(shape_from_data=True)


def mended() -> Case:
    return build(shape_from_data=False)


museum.exhibit("pytorch-196133").compare(broken, mended)

# %% [markdown]
"""
#### From the host into the step

*loud on a GPU*, [pytorch/pytorch#91302](https://github.com/pytorch/pytorch/issues/91302)

A capture ended with an error because a tensor of the CPU was brought to the GPU in the captured
code.

**The mend.** Make the tensor once, outside, and copy the numbers into it before each replay.
"""


# %% id="pytorch-91302" tags=["nbval-check-output"]
def build(inside: bool) -> Case:
    x, lens = torch.ones(3), torch.zeros(3)
    numbers = [0.0, 0.0, 0.0]

    def prepare(i: int) -> None:
        numbers[:] = [1.0 + i, 2.0, 3.0]
        if not inside:
            lens.copy_(torch.tensor(numbers))

    def step() -> torch.Tensor:
        if inside:
            return x * torch.tensor(numbers)
        return x * lens

    return Case(prepare, step, owners={"x": x, "lens": lens})


def broken() -> Case:
    return build(inside=True)


def mended() -> Case:
    return build(inside=False)


museum.exhibit("pytorch-91302").compare(broken, mended)

# %% [markdown]
"""
#### Selecting the live rows

*loud on a GPU*, [vllm-project/vllm#43869](https://github.com/vllm-project/vllm/issues/43869)

The change that mended slot -1 (vllm-project/vllm#43810) could not select the live rows with a mask:
how many there are is known to the device alone. It took a kernel that leaves negative slots out.

**The mend.** Send padded rows to a row that nobody reads.
"""


# %% id="vllm-43869" tags=["nbval-check-output"]
def build(select: bool) -> Case:
    cache = torch.zeros(9)  # the last row is the dummy's
    keys = torch.ones(3)
    slots = torch.zeros(3, dtype=torch.int64)

    def prepare(i: int) -> None:
        keys.fill_(1.0 + i)
        slots.copy_(torch.tensor([i, i + 4, -1]))

    def step() -> torch.Tensor:
        if select:
            live = slots >= 0
            cache[slots[live]] = keys[live]
        else:
            cache[torch.where(slots >= 0, slots, 8)] = keys
        return cache[:8] * 2

    owners = {"cache": cache, "keys": keys, "slots": slots}
    return Case(prepare, step, owners=owners)


def broken() -> Case:
    return build(select=True)


def mended() -> Case:
    return build(select=False)


museum.exhibit("vllm-43869").compare(broken, mended)

# %% [markdown]
"""
#### A copy to the host at the end

*loud on a GPU*, [NVIDIA/warp#653](https://github.com/NVIDIA/warp/issues/653)

A long graph was to end with a copy to the host. The capture failed, and the same copy behind the
launch of the graph returned garbage.

**The mend.** Copy after the replay, from the graph's output.
"""


# %% id="warp-653" tags=["nbval-check-output"]
def build(in_step: bool) -> Case:
    x, on_host = torch.zeros(2), torch.zeros(2)

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        if in_step:
            on_host.copy_((x * 2).cpu())
        return x * 2

    def read(out: torch.Tensor) -> torch.Tensor:
        return out.cpu()

    return Case(prepare, step, owners={"x": x}, read=read)


def broken() -> Case:
    return build(in_step=True)


def mended() -> Case:
    return build(in_step=False)


museum.exhibit("warp-653").compare(broken, mended)

# %% [markdown]
"""
### Frozen value or branch
"""

# %% [markdown]
"""
#### The graph's key lacks the sequence length

*silent on a GPU*, [paiml/aprender#2030](https://github.com/paiml/aprender/issues/2030)

Graphs were kept by batch size alone. Above 1,024 tokens another attention kernel takes over, and a
graph that was recorded below went on with the first one as the text grew.

**The mend.** A graph for each side of the threshold, or the choice on the device.
"""


# %% id="aprender-2030" tags=["nbval-check-output"]
def build(on_device: bool) -> Case:
    state = SimpleNamespace(scores=torch.zeros(4), seq_len=0)
    seq_len = torch.zeros(1)

    def prepare(i: int) -> None:
        state.scores.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]) * (1 + i))
        state.seq_len = 1000 + 20 * i  # the threshold is passed at i = 2
        seq_len.fill_(state.seq_len)

    def step() -> torch.Tensor:
        short, long = state.scores * 2, state.scores.sum() + state.scores
        if on_device:
            return torch.where(seq_len < 1024, short, long)
        return short if state.seq_len < 1024 else long

    return Case(prepare, step, owners={"state": state, "seq_len": seq_len})


def broken() -> Case:
    return build(on_device=False)


def mended() -> Case:
    return build(on_device=True)


museum.exhibit("aprender-2030").compare(broken, mended)

# %% [markdown]
"""
#### The scale is not in the key

*silent on a GPU*, [flashinfer-ai/flashinfer#4014](https://github.com/flashinfer-ai/flashinfer/issues/4014)

A graph of attention had the scale built in as a constant, and the key under which it was kept did
not name it. A call with the same shapes and another scale got plausible, finite, wrong numbers.

**The mend.** Everything that is frozen belongs into the key; what changes belongs into a buffer.
"""


# %% id="flashinfer-4014" tags=["nbval-check-output"]
def build(in_buffer: bool) -> Case:
    attention = SimpleNamespace(scale=1.0)
    scale, scores = torch.ones(1), torch.tensor([1.0, 2.0])

    def prepare(i: int) -> None:
        attention.scale = [1.0, 1.0, 3.0, 3.0][i]
        scale.fill_(attention.scale)

    def step() -> torch.Tensor:
        factor = scale if in_buffer else attention.scale
        return torch.softmax(scores * factor, 0)

    return Case(prepare, step, owners={"attention": attention, "scale": scale})


def broken() -> Case:
    return build(in_buffer=False)


def mended() -> Case:
    return build(in_buffer=True)


museum.exhibit("flashinfer-4014").compare(broken, mended)

# %% [markdown]
"""
#### A grid beyond the planned entries

*silent on a GPU*, [flashinfer-ai/flashinfer#4016](https://github.com/flashinfer-ai/flashinfer/issues/4016), [flashinfer-ai/flashinfer#4002](https://github.com/flashinfer-ai/flashinfer/issues/4002), [flashinfer-ai/flashinfer#5176](https://github.com/flashinfer-ai/flashinfer/issues/5176)

A graph launches as many blocks as at capture. The planner filled entries for the real work only, so
the rest of the blocks read what an earlier plan had left. From a fresh workspace the result
happened to be right.

**The mend.** A mask says which entries count, and the grid stays as it is.
"""


# %% id="flashinfer-4016" tags=["nbval-check-output"]
def build(mask: bool) -> Case:
    plan = SimpleNamespace(entries=torch.zeros(4), planned=0)
    valid = torch.zeros(4)

    def prepare(i: int) -> None:
        plan.planned = [4, 4, 2, 1][i]
        plan.entries[: plan.planned] = 1.0 + i  # the rest is an older plan's
        valid.copy_((torch.arange(4) < plan.planned).float())

    def step() -> torch.Tensor:
        if mask:
            return (plan.entries * valid).sum()
        return plan.entries[: plan.planned].sum()

    return Case(prepare, step, owners={"plan": plan, "valid": valid})


def broken() -> Case:
    return build(mask=False)


def mended() -> Case:
    return build(mask=True)


museum.exhibit("flashinfer-4016").compare(broken, mended)

# %% [markdown]
"""
#### The window of attention stands still

*silent on a GPU*, [ikawrakow/ik_llama.cpp#2136](https://github.com/ikawrakow/ik_llama.cpp/issues/2136)

A copy of a sliding window of the cache kept its source address, since a check made an exception for
copies. Past about 600 tokens the model read old keys, and the text ran into a loop.

**The mend.** Compare the source as well, or gather by places that stand on the device.
"""


# %% id="ik-llama-2136" tags=["nbval-check-output"]
def build(on_device: bool) -> Case:
    state = SimpleNamespace(window=torch.zeros(3), start=0)
    state.cache = torch.arange(8.0)
    places = torch.zeros(3, dtype=torch.int64)

    def prepare(i: int) -> None:
        state.start = max(0, i - 1)
        places.copy_(torch.arange(3) + state.start)

    def step() -> torch.Tensor:
        if on_device:
            state.window.copy_(state.cache[places])
        else:
            state.window.copy_(state.cache[state.start : state.start + 3])
        return state.window + 0.5

    return Case(prepare, step, owners={"state": state, "places": places})


def broken() -> Case:
    return build(on_device=False)


def mended() -> Case:
    return build(on_device=True)


museum.exhibit("ik-llama-2136").compare(broken, mended)

# %% [markdown]
"""
#### Each token overwrites the same place

*silent on a GPU*, [InfiniTensor/InfiniLM#540](https://github.com/InfiniTensor/InfiniLM/issues/540)

Offsets into the KV cache and shapes of the attention were read on the host while the graph was
recorded, so a replay went on with the decisions of the capture.

**The mend.** The position is a tensor, and an index operation writes there.
"""


# %% id="infinilm-540" tags=["nbval-check-output"]
def build(on_device: bool) -> Case:
    state = SimpleNamespace(cache=torch.zeros(4), key=torch.ones(1), position=0)
    position = torch.zeros(1, dtype=torch.int64)

    def prepare(i: int) -> None:
        state.key.fill_(1.0 + i)
        state.position = i
        position.fill_(i)

    def step() -> torch.Tensor:
        if on_device:
            state.cache.index_copy_(0, position, state.key)
        else:
            state.cache[state.position : state.position + 1] = state.key
        return state.cache * 10

    return Case(prepare, step, owners={"state": state, "position": position})


def broken() -> Case:
    return build(on_device=False)


def mended() -> Case:
    return build(on_device=True)


museum.exhibit("infinilm-540").compare(broken, mended)

# %% [markdown]
"""
#### Full graphs for mixed batches

*silent on a GPU*, [pytorch/torchtitan#3685](https://github.com/pytorch/torchtitan/issues/3685), [pytorch/torchtitan#3776](https://github.com/pytorch/torchtitan/issues/3776)

An attention backend said that all its batches could be captured. Graphs of batches with prefill had
offsets and query lengths inside, and a large batch gave meaningless tokens and NaN.

**The mend.** Replay for batches of decode steps alone, where each request has one token; run the
others eagerly.
"""


# %% id="torchtitan-3685" tags=["nbval-check-output"]
def build(mixed: bool) -> Case:
    batch = SimpleNamespace(x=torch.arange(6.0), query_len=1)
    lengths = torch.ones(1)

    def prepare(i: int) -> None:
        batch.query_len = [1, 1, 3, 1][i] if mixed else 1
        lengths.fill_(batch.query_len)
        batch.x.copy_(torch.arange(6.0) + i)

    def step() -> torch.Tensor:
        return batch.x.view(2, 3)[:, : batch.query_len].sum(1) / lengths

    return Case(prepare, step, owners={"batch": batch, "lengths": lengths})


def broken() -> Case:
    return build(mixed=True)


def mended() -> Case:
    return build(mixed=False)


museum.exhibit("torchtitan-3685").compare(broken, mended)

# %% [markdown]
"""
#### The longest length is frozen

*silent on a GPU*, [huggingface/transformers#45323](https://github.com/huggingface/transformers/issues/45323)

Graphs were kept by the sizes of their tensors. The kernel of FlashAttention also got max_seqlen_k,
a Python number. Two batches of one size shared a graph, and GSM8K fell from 0.45 to 0.23.

**The mend.** The number goes into the key of the graph, or onto the device, or is the largest
possible one.
"""


# %% id="transformers-45323" tags=["nbval-check-output"]
def build(tensor: bool) -> Case:
    batch = SimpleNamespace(lens=torch.zeros(2), longest=0)
    longest, places = torch.zeros(1), torch.arange(8.0)

    def prepare(i: int) -> None:
        batch.lens.copy_(torch.tensor([2.0, 1.0]) + 2 * i)
        batch.longest = 2 + 2 * i
        longest.fill_(batch.longest)

    def step() -> torch.Tensor:
        limit = longest if tensor else batch.longest
        seen = (places < limit) & (places < batch.lens[:, None])
        return seen.sum(1)  # to how many tokens each request attends

    return Case(prepare, step, owners={"batch": batch, "longest": longest})


def broken() -> Case:
    return build(tensor=False)


def mended() -> Case:
    return build(tensor=True)


museum.exhibit("transformers-45323").compare(broken, mended)

# %% [markdown]
"""
### Padding leaks
"""

# %% [markdown]
"""
#### A scale over padded rows

*silent on a GPU*, [flashinfer-ai/flashinfer#2883](https://github.com/flashinfer-ai/flashinfer/issues/2883), [flashinfer-ai/flashinfer#3057](https://github.com/flashinfer-ai/flashinfer/issues/3057)

An attention kernel wrote NaN into padded rows of its output. That alone would do no harm; but
quantization after it takes one scale for several rows, and live ones came out wrong, finite, and
quietly worse.

**The mend.** Padded rows take no part in what is computed over rows.
"""


# %% id="flashinfer-2883" tags=["nbval-check-output"]
def build(live_only: bool) -> Case:
    x, live = torch.zeros(4, 2), torch.zeros(4, 1)

    def prepare(i: int) -> None:
        x[:2].copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]) + i)
        x[2:] = 0.0 if i < 2 else 1000.0  # what earlier work left
        live[:2] = 1.0

    def step() -> torch.Tensor:
        largest = torch.where(live > 0, x, 0.0) if live_only else x
        scale = largest.abs().amax() / 127
        return (x / scale).round() * scale  # to eight bits and back

    def padding(i: int) -> list[torch.Tensor]:
        return [x[2:]]

    def read(out: torch.Tensor) -> torch.Tensor:
        return out[:2]

    owners = {"x": x, "live": live}
    return Case(prepare, step, owners=owners, padding=padding, read=read)


def broken() -> Case:
    return build(live_only=False)


def mended() -> Case:
    return build(live_only=True)


museum.exhibit("flashinfer-2883").compare(broken, mended)

# %% [markdown]
"""
#### Lengths of rows that are gone

*loud on a GPU*, [sgl-project/sglang#1094](https://github.com/sgl-project/sglang/issues/1094), [sgl-project/sglang#1789](https://github.com/sgl-project/sglang/issues/1789)

Lengths of padded rows were not set, and at times a replay ended with an illegal memory access. A
later change mended the sum of all lengths, which has to count the padded ones too.

**The mend.** Fill the padded rows' lengths at each step.
"""


# %% id="sglang-1094" tags=["nbval-check-output"]
def build(pad: bool) -> Case:
    fixed = SimpleNamespace(seq_lens=torch.zeros(3, dtype=torch.int64))
    batch, cache = SimpleNamespace(), torch.arange(14.0)

    def prepare(i: int) -> None:
        live = [3, 3, 2, 1][i]
        lens = torch.ones(3, dtype=torch.int64)
        lens[:live] = torch.tensor([3, 4, 6])[:live]
        rows = 3 if pad else live
        fixed.seq_lens[:rows].copy_(lens[:rows])
        batch.seq_lens = lens if i else fixed.seq_lens

    def step() -> torch.Tensor:
        ends = batch.seq_lens.cumsum(0)  # of the requests, packed together
        return cache[ends - 1] + 100 * ends[-1]

    owners = {"batch": batch, "fixed": fixed}
    return Case(prepare, step, owners=owners, read=lambda out: out[:1])


def broken() -> Case:
    return build(pad=False)


def mended() -> Case:
    return build(pad=True)


museum.exhibit("sglang-1094").compare(broken, mended)

# %% [markdown]
"""
#### The state of a parked request

*silent on a GPU*, [NVIDIA/TensorRT-LLM#13278](https://github.com/NVIDIA/TensorRT-LLM/issues/13278)

Padded rows of a Mamba model had the slot of a request that was waiting outside of the batch, or an
old one. Each padded step updated its state.

**The mend.** A slot for padding alone, for good.
"""


# %% id="tensorrt-llm-13278" tags=["nbval-check-output"]
def build(dummy: int) -> Case:
    states = torch.zeros(5)  # four requests, and one for padding
    x, slots = torch.zeros(3), torch.zeros(3, dtype=torch.int64)

    def prepare(i: int) -> None:
        if i == 0:
            states.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0, 0.0]))
        x.copy_(torch.tensor([0.1, 0.2, 5.0]))
        slots.copy_(torch.tensor([0, 1, dummy]))

    def step() -> torch.Tensor:
        states.index_add_(0, slots, x)
        return states[:4].clone()

    def padding(i: int) -> list[torch.Tensor]:
        return [x[2:], states[4:]]

    owners = {"states": states, "x": x, "slots": slots}
    return Case(prepare, step, owners=owners, padding=padding)


def broken() -> Case:
    return build(dummy=3)


def mended() -> Case:
    return build(dummy=4)


museum.exhibit("tensorrt-llm-13278").compare(broken, mended)

# %% [markdown]
"""
#### Garbage in the null block

*silent on a GPU*, [vllm-project/vllm#36939](https://github.com/vllm-project/vllm/issues/36939), [vllm-project/vllm#57156](https://github.com/vllm-project/vllm/issues/57156)

Entries of the page table without a page point to page 0, which capture had filled with garbage.
Attention reads it and weighs it with zero. Once it held NaN every token of the batch was lost: all
ids were 0.

**The mend.** Choose with where instead of multiplying by a mask, or keep the null page clean.
"""


# %% id="vllm-36939" tags=["nbval-check-output"]
def build(select: bool) -> Case:
    pages = torch.zeros(3, 2)  # page 0 is the null page
    table, used = torch.tensor([1, 0]), torch.tensor([1.0, 0.0])

    def prepare(i: int) -> None:
        pages[0] = float("nan") if i == 2 else 0.5  # whatever was written there
        pages[1].copy_(torch.tensor([1.0, 2.0]) + i)

    def step() -> torch.Tensor:
        read = pages[table]
        if select:
            read = torch.where(used[:, None] > 0, read, 0.0)
        return (used[:, None] * read).sum(0)

    def padding(i: int) -> list[torch.Tensor]:
        return [pages[0]]

    owners = {"pages": pages, "table": table, "used": used}
    return Case(prepare, step, owners=owners, padding=padding)


def broken() -> Case:
    return build(select=False)


def mended() -> Case:
    return build(select=True)


museum.exhibit("vllm-36939").compare(broken, mended)

# %% [markdown]
"""
#### Length zero

*silent on a GPU*, [vllm-project/vllm#38436](https://github.com/vllm-project/vllm/issues/38436), [sgl-project/sglang#1779](https://github.com/sgl-project/sglang/issues/1779)

Padded requests had length 0. A softmax over nothing is NaN, and quantization of 128 rows at once
carried it to the live ones. With length 1 they attend to one token, and what comes out is finite.

**The mend.** Padded rows take no part in what is computed over rows; and a dummy has a length that
kernels can work with.
"""


# %% id="vllm-38436" tags=["nbval-check-output"]
def build(live_only: bool) -> Case:
    sums, lens, live = torch.zeros(3), torch.ones(3), torch.ones(3)

    def prepare(i: int) -> None:
        sums.copy_(torch.tensor([4.0, 6.0, 0.0]) + i)
        lens.copy_(torch.tensor([2.0, 3.0, 1.0]))
        if i:  # there is no third request
            sums[2], lens[2], live[2] = 0.0, 0.0, 0.0

    def step() -> torch.Tensor:
        means = sums / lens
        if live_only:
            means = torch.where(live > 0, means, 0.0)
        return means / means.amax()  # one scale for the batch

    def padding(i: int) -> list[torch.Tensor]:
        return [lens[2:]] if i else []

    owners = {"sums": sums, "lens": lens, "live": live}
    return Case(
        prepare, step, owners=owners, padding=padding, read=lambda out: out[:2]
    )


def broken() -> Case:
    return build(live_only=False)


def mended() -> Case:
    return build(live_only=True)


museum.exhibit("vllm-38436").compare(broken, mended)

# %% [markdown]
"""
#### Padding before the experts

*loud on a GPU*, [vllm-project/vllm#39593](https://github.com/vllm-project/vllm/issues/39593)

With graphs on several ranks a batch was padded more than before, nearly every padded step had NaN
in its padded rows, and the router sent such a token to one expert several times. The kernel ended
with an illegal access. Here padded tokens take places in the queue of an expert.

**The mend.** The router does not count padded rows.
"""


# %% id="vllm-39593" tags=["nbval-check-output"]
def build(count_live: bool) -> Case:
    expert = torch.zeros(4, dtype=torch.int64)  # which expert each token wants
    x, live = torch.zeros(4), torch.zeros(4)

    def prepare(i: int) -> None:
        x.copy_(torch.tensor([9.0, 9.0, 1.0, 2.0]) + i)
        live.copy_(torch.tensor([0.0, 0.0, 1.0, 1.0]))  # two padded rows
        expert.copy_(torch.tensor([0, 1 - i % 2, 1, i % 2]))

    def step() -> torch.Tensor:
        wants = torch.nn.functional.one_hot(expert, 2).float()
        if count_live:
            wants = wants * live[:, None]
        place = (wants.cumsum(0) * wants).sum(1)  # 1 is the first in the queue
        return torch.where((place <= 1) & (live > 0), x * 10, 0.0)

    def padding(i: int) -> list[torch.Tensor]:
        return [expert[:2]]

    owners = {"expert": expert, "x": x, "live": live}
    return Case(prepare, step, owners=owners, padding=padding)


def broken() -> Case:
    return build(count_live=False)


def mended() -> Case:
    return build(count_live=True)


museum.exhibit("vllm-39593").compare(broken, mended)

# %% [markdown]
"""
#### Slot -1 is a slot

*silent on a GPU*, [vllm-project/vllm#43810](https://github.com/vllm-project/vllm/issues/43810)

64 tokens ran in a graph of 128. The other 64 rows had slot -1, which an index operation takes as
the last one: they overwrote the state of a request that had its last token there.

**The mend.** A slot of its own for padded rows, or a kernel that leaves negative slots out.
"""


# %% id="vllm-43810" tags=["nbval-check-output"]
def build(dummy: int) -> Case:
    cache = torch.zeros(9)  # eight slots, and one that nobody reads
    keys, slots = torch.zeros(4), torch.zeros(4, dtype=torch.int64)
    last = cache[:8] if dummy < 0 else cache

    def prepare(i: int) -> None:
        cache[7] = 70.0  # another request's
        keys.copy_(torch.tensor([1.0, 2.0, 0.5, 0.5]) + i)
        slots.copy_(torch.tensor([2 * i, 2 * i + 1, dummy, dummy]))

    def step() -> torch.Tensor:
        last[slots] = keys
        return cache[:8].clone()

    def padding(i: int) -> list[torch.Tensor]:
        return [keys[2:], cache[8:]]

    owners = {"cache": cache, "keys": keys, "slots": slots}
    return Case(prepare, step, owners=owners, padding=padding)


def broken() -> Case:
    return build(dummy=-1)


def mended() -> Case:
    return build(dummy=8)


museum.exhibit("vllm-43810").compare(broken, mended)

# %% [markdown]
"""
### Shape outside of what was captured
"""

# %% [markdown]
"""
#### A table wider than the captured one

*loud on a GPU*, [GeeeekExplorer/nano-vllm#190](https://github.com/GeeeekExplorer/nano-vllm/issues/190), [predibase/lorax#363](https://github.com/predibase/lorax/issues/363)

The fixed table had 16 columns, a batch needed 17, and the copy into it stopped with a shape error.
What stands here is the tempting mend, a larger buffer on the spot, which turns the error into wrong
numbers.

**The mend.** Record with the largest width that the model allows; run eagerly what is beyond.
"""


# %% id="nano-vllm-190" tags=["nbval-check-output"]
def build(grow: bool) -> Case:
    fixed = SimpleNamespace(
        table=torch.zeros(2 if grow else 4, dtype=torch.int64)
    )
    cache = torch.tensor([0.0, 1.0, 10.0, 100.0, 1000.0])

    def prepare(i: int) -> None:
        pages = [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]][i]
        if len(pages) > len(fixed.table):
            fixed.table = torch.zeros(len(pages), dtype=torch.int64)
        fixed.table.zero_()
        fixed.table[: len(pages)].copy_(torch.tensor(pages))

    def step() -> torch.Tensor:
        return cache[fixed.table].sum()

    return Case(prepare, step, owners={"fixed": fixed})


def broken() -> Case:
    return build(grow=True)


def mended() -> Case:
    return build(grow=False)


museum.exhibit("nano-vllm-190").compare(broken, mended)

# %% [markdown]
"""
#### A graph for every shape

*silent on a GPU*, [pytorch/pytorch#128424](https://github.com/pytorch/pytorch/issues/128424), [pytorch/pytorch#188913](https://github.com/pytorch/pytorch/issues/188913)

With mode='reduce-overhead' each new length of the input was recorded anew. Compiling took very
long, and the GPU's memory went on growing.

**The mend.** Pad to a few sizes, and run the rest without a graph.
"""


# %% id="pytorch-128424" tags=["nbval-check-output"]
def build(pad: bool) -> Case:
    x = torch.zeros(64)
    state = SimpleNamespace(length=16, by_length={})
    if pad:
        state.by_length[64] = torch.zeros(64)

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        state.length += 1  # requests that grow by a token
        length = 64 if pad else state.length
        if length not in state.by_length:
            state.by_length[length] = torch.zeros(64)
        hidden = state.by_length[length].copy_(x)
        return hidden * 2

    owners = {"x": x, "state": state}
    return Case(prepare, step, owners=owners, read=lambda out: out[:1])


def broken() -> Case:
    return build(pad=False)


def mended() -> Case:
    return build(pad=True)


museum.exhibit("pytorch-128424").compare(broken, mended)

# %% [markdown]
"""
### Warm-up missing
"""

# %% [markdown]
"""
#### The workspace is stuck in the pool

*silent on a GPU*, [pytorch/pytorch#193832](https://github.com/pytorch/pytorch/issues/193832), [pytorch/pytorch#193402](https://github.com/pytorch/pytorch/issues/193402)

cuBLAS gets a workspace for each stream. The first product on the capture's stream makes one, in the
graph's memory, and it stays there after the graph is gone; or it goes, and another graph still uses
it.

**The mend.** Make the workspace before the capture and hand it to whoever needs one, on any stream.
"""


# %% id="pytorch-193832" tags=["nbval-check-output"]
def build(by_stream: bool) -> Case:
    x = torch.zeros(2)
    workspaces = {"default": torch.zeros(2)}

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def workspace() -> torch.Tensor:
        on_its_own = by_stream and cuda.is_current_stream_capturing()
        stream = "capture" if on_its_own else "default"
        if stream not in workspaces:
            workspaces[stream] = torch.zeros(2)
        return workspaces[stream]

    def step() -> torch.Tensor:
        return x * 2 + workspace()

    return Case(prepare, step, owners={"x": x, "workspaces": workspaces})


def broken() -> Case:
    return build(by_stream=True)


def mended() -> Case:
    return build(by_stream=False)


museum.exhibit("pytorch-193832").compare(broken, mended)

# %% [markdown]
"""
#### Connecting in the middle of a capture

*loud on a GPU*, [sgl-project/sglang#39078](https://github.com/sgl-project/sglang/issues/39078), [sgl-project/sglang#33356](https://github.com/sgl-project/sglang/issues/33356)

A buffer for expert parallelism was made at the first dispatch. For a decoding graph that was inside
of the capture, where it may neither allocate nor wait; the error named the network.

**The mend.** Make it when the server starts.
"""


# %% id="sglang-39078" tags=["nbval-check-output"]
def build(early: bool) -> Case:
    x, made = torch.zeros(2), SimpleNamespace(buffer=None)

    def connect() -> None:
        cuda.synchronize()  # the ranks meet
        made.buffer = torch.zeros(2)

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)
        if early and made.buffer is None:
            connect()

    def step() -> torch.Tensor:
        if cuda.is_current_stream_capturing() and made.buffer is None:
            connect()
        return x * 2 if made.buffer is None else made.buffer.copy_(x) * 2

    return Case(prepare, step, owners={"x": x, "made": made})


def broken() -> Case:
    return build(early=False)


def mended() -> Case:
    return build(early=True)


museum.exhibit("sglang-39078").compare(broken, mended)

# %% [markdown]
"""
#### One warm-up was not enough

*silent on a GPU*, [pytorch/torchtitan#4433](https://github.com/pytorch/torchtitan/issues/4433), [pytorch/pytorch#120309](https://github.com/pytorch/pytorch/issues/120309)

Optimizers make their state in the first step and use it in the second; torch.compile runs once to
tune and once to record. Both projects warm up twice for such reasons.

**The mend.** Make buffers when the object is made, or warm up until nothing new is made.
"""


# %% id="torchtitan-4433" tags=["nbval-check-output"]
def build(early: bool) -> Case:
    x, state = torch.zeros(2), SimpleNamespace(runs=0, momentum=None)
    if early:
        state.momentum = torch.zeros(2)

    def prepare(i: int) -> None:
        x.copy_(torch.tensor([1.0, 2.0]) + i)

    def step() -> torch.Tensor:
        state.runs += 1
        if state.momentum is None and state.runs > 1:
            state.momentum = torch.zeros(2)  # there is a step to remember
        if state.momentum is None:
            return x * 1
        state.momentum.mul_(0.5).add_(x)
        return state.momentum * 1

    return Case(prepare, step, owners={"x": x, "state": state})


def broken() -> Case:
    return build(early=False)


def mended() -> Case:
    return build(early=True)


museum.exhibit("torchtitan-4433").compare(broken, mended)

# %% [markdown]
"""
#### A function of its own for the capture

*loud on a GPU*, [vllm-project/vllm#46523](https://github.com/vllm-project/vllm/issues/46523), [pytorch/pytorch#185074](https://github.com/pytorch/pytorch/issues/185074)

There was a warm-up, and then the capture made a new forward function and ran that for the first
time while recording. What compilers do at a first call fell into the capture.

**The mend.** Warm up exactly what will be captured.
"""


# %% id="vllm-46523" tags=["nbval-check-output"]
def build(same: bool) -> Case:
    x, tables = torch.zeros(2), {}

    def prepare(i: int) -> None:
        x.copy_(torch.tensor([1.0, 2.0]) + i)

    def step() -> torch.Tensor:
        capturing = cuda.is_current_stream_capturing()
        mode = "full" if capturing and not same else "general"
        if mode not in tables:
            tables[mode] = torch.full((2,), 10.0)  # tuned at the first call
        return x + tables[mode]

    return Case(prepare, step, owners={"x": x, "tables": tables})


def broken() -> Case:
    return build(same=False)


def mended() -> Case:
    return build(same=True)


museum.exhibit("vllm-46523").compare(broken, mended)

# %% [markdown]
"""
### Random numbers
"""

# %% [markdown]
"""
#### Checkpointing winds the generator back

*loud on a GPU*, [pytorch/pytorch#162505](https://github.com/pytorch/pytorch/issues/162505), [Dao-AILab/flash-attention#165](https://github.com/Dao-AILab/flash-attention/issues/165)

Activation checkpointing runs a layer twice with the same random numbers: it reads the generator's
state and sets it again. Both are the host's work, and a capture refused them.

**The mend.** Draw once and keep the mask; newer releases of PyTorch can wind back within a capture.
"""


# %% id="pytorch-162505" tags=["nbval-check-output"]
def build(rewind: bool) -> Case:
    x = torch.zeros(4)

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        if not rewind:
            keep = torch.rand(4) > 0.5  # drawn once, used twice
            return x * keep + 10 * keep
        state = torch.get_rng_state()
        forward = x * (torch.rand(4) > 0.5)
        torch.set_rng_state(state)
        return forward + 10 * (torch.rand(4) > 0.5)

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(rewind=True)


def mended() -> Case:
    return build(rewind=False)


museum.exhibit("pytorch-162505").compare(broken, mended)

# %% [markdown]
"""
#### A generator of your own

*loud on a GPU*, [pytorch/pytorch#176752](https://github.com/pytorch/pytorch/issues/176752), [pytorch/pytorch#173421](https://github.com/pytorch/pytorch/issues/173421)

A graph has to know the generators whose numbers it draws, since each replay must move them on.
PyTorch asked for their registration; the reports make it automatic and keep a state for each
capture.

**The mend.** graph.register_generator_state(generator) before the capture, or the default
generator.
"""


# %% id="pytorch-176752" tags=["nbval-check-output"]
def build(own: bool) -> Case:
    x, generator = torch.zeros(4), torch.Generator().manual_seed(0)

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        source = generator if own else torch.default_generator
        keep = torch.rand(4, generator=source) > 0.5
        return x * keep

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(own=True)


def mended() -> Case:
    return build(own=False)


museum.exhibit("pytorch-176752").compare(broken, mended)

# %% [markdown]
"""
### Stream, thread or device
"""

# %% [markdown]
"""
#### A stream that nobody waits for

*loud on a GPU*, [deepseek-ai/DeepEP#62](https://github.com/deepseek-ai/DeepEP/issues/62)

Capturing a model with expert-parallel communication ended with 'capturing stream has unjoined
work'.

**The mend.** The capture's stream waits for every stream that it started.
"""


# %% id="deepep-62" tags=["nbval-check-output"]
def build(join: bool) -> Case:
    x, out, side = torch.zeros(2), torch.zeros(2), cuda.Stream()

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        main = cuda.current_stream()
        side.wait_stream(main)
        with cuda.stream(side):
            out.copy_(x * 2)
        if join:
            main.wait_stream(side)
        return x + 1

    def read(y: torch.Tensor) -> list[torch.Tensor]:
        return [y, out]

    return Case(prepare, step, owners={"x": x, "out": out}, read=read)


def broken() -> Case:
    return build(join=False)


def mended() -> Case:
    return build(join=True)


museum.exhibit("deepep-62").compare(broken, mended)

# %% [markdown]
"""
#### An event of another time

*loud on a GPU*, [pytorch/pytorch#180396](https://github.com/pytorch/pytorch/issues/180396), [pytorch/pytorch#180090](https://github.com/pytorch/pytorch/issues/180090)

Autograd remembers the stream of the warm-up. In the capture it waits for that stream, which is no
part of it, and the capture was invalidated with an error that names neither.

**The mend.** Warm up on the stream that will be captured, and record events anew.
"""


# %% id="pytorch-180396" tags=["nbval-check-output"]
def build(fresh: bool) -> Case:
    x, known = torch.zeros(2), {}

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        main = cuda.current_stream()
        y = x * 2
        if fresh or "done" not in known:  # kept from the first run on
            known["done"] = main.record_event()
        main.wait_event(known["done"])
        return y + 1

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(fresh=False)


def mended() -> Case:
    return build(fresh=True)


museum.exhibit("pytorch-180396").compare(broken, mended)

# %% [markdown]
"""
#### Another thread breaks the capture

*loud on a GPU*, [vllm-project/vllm#48053](https://github.com/vllm-project/vllm/issues/48053)

Threads that copy to the host, fetch weights ahead or read telemetry called CUDA during a capture.
In the mode 'global' any such call of any thread invalidates it.

**The mend.** Let the thread rest during the capture, or capture with
capture_error_mode='thread_local'.
"""


# %% id="vllm-48053" tags=["nbval-check-output"]
def build(busy: bool) -> Case:
    x = torch.zeros(2)

    def background() -> None:
        with contextlib.suppress(RuntimeError):  # nobody looks here
            cuda.synchronize()  # a copy to the host, a prefetcher

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        y = x * 2
        if busy:
            thread = threading.Thread(target=background)
            thread.start()
            thread.join()
        return y + 1

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(busy=True)


def mended() -> Case:
    return build(busy=False)


museum.exhibit("vllm-48053").compare(broken, mended)

# %% [markdown]
"""
### Allocator or garbage collector
"""

# %% [markdown]
"""
#### A dropped kernel unloads its module

*loud on a GPU*, [ROCm/ATOM#1322](https://github.com/ROCm/ATOM/issues/1322), [vllm-project/vllm#54646](https://github.com/vllm-project/vllm/issues/54646), [NVIDIA/warp#401](https://github.com/NVIDIA/warp/issues/401)

A tuner dropped compiled kernels while a graph was captured. A collection in the middle of it
finalized them, which unloads modules of the GPU; that is forbidden there, and the capture was lost.
There are no modules on a CPU: here the finalizer makes another call that a capture forbids.

**The mend.** Keep the collector off from before the capture until after it.
"""


# %% id="atom-1322" tags=["nbval-check-output"]
class Kernel:
    def __init__(self) -> None:
        self.me = self  # a cycle: only the collector ends it

    def __del__(self) -> None:
        with contextlib.suppress(RuntimeError):  # nobody looks here
            cuda.synchronize()  # for the unloading of a module


def build(collect: bool) -> Case:
    x = torch.zeros(2)

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)
        if i == 1 and not collect:
            gc.collect()  # the capture has ended

    def step() -> torch.Tensor:
        y = x * 2
        if cuda.is_current_stream_capturing():
            Kernel()  # the tuner tries it, and drops it
            if collect:
                gc.collect()  # its turn happens to be now
        return y + 1

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(collect=True)


def mended() -> Case:
    return build(collect=False)


museum.exhibit("atom-1322").compare(broken, mended)

# %% [markdown]
"""
#### The collector meets an old graph

*loud on a GPU*, [pytorch/pytorch#161037](https://github.com/pytorch/pytorch/issues/161037), [NVIDIA/TransformerEngine#2092](https://github.com/NVIDIA/TransformerEngine/issues/2092), [mujocolab/mjlab#821](https://github.com/mujocolab/mjlab/issues/821)

PyTorch had collected garbage before each capture, and stopped to, because it took long. Now and
then a capture failed: the collector ran in the middle of it and destroyed a graph that nobody used
any more. Where it runs is chance; here it is a line of the step.

**The mend.** Let go of old graphs and collect garbage before the capture, and keep the collector
off until it has ended.
"""


# %% id="pytorch-161037" tags=["nbval-check-output"]
def build(early: bool) -> Case:
    x, server = torch.zeros(2), SimpleNamespace(runner=None)

    def collect() -> None:
        server.runner = None
        gc.collect()

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)
        if i == 0:
            runner = SimpleNamespace(graph=cuda.CUDAGraph())
            runner.me = runner  # a cycle: only the collector ends it
            with cuda.graph(runner.graph):
                x.mul(2)
            server.runner = runner
            del runner
            if early:
                collect()

    def step() -> torch.Tensor:
        y = x * 2
        if cuda.is_current_stream_capturing():
            collect()  # its turn happens to be now
        return y + 1

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(early=False)


def mended() -> Case:
    return build(early=True)


museum.exhibit("pytorch-161037").compare(broken, mended)

# %% [markdown]
"""
### Collectives
"""

# %% [markdown]
"""
#### The flag of an earlier round

*silent on a GPU*, [ROCm/aiter#3928](https://github.com/ROCm/aiter/issues/3928)

Ranks of a fast all-reduce wait for a flag of the round's colour. The host gave the colour as a
number, so every replay waited for the one of the capture, which was there already, and summed the
data of the round before.

**The mend.** The counter stands on the device, and the kernel moves it on.
"""


# %% id="aiter-3928" tags=["nbval-check-output"]
def build(on_device: bool) -> Case:
    link = SimpleNamespace(color=0.0, flag=torch.zeros(1), data=torch.zeros(1))
    peer, color = torch.zeros(1), torch.zeros(1)

    def prepare(i: int) -> None:
        link.color = 1.0 + i
        color.fill_(link.color)
        late = i == 1  # then the flag and the data are those of round 0
        link.flag.fill_(1.0 if late else link.color)
        peer.fill_(10.0 if late else 10.0 * (1 + i))

    def step() -> torch.Tensor:
        wanted = color if on_device else link.color
        arrived = link.flag == wanted
        link.data.copy_(torch.where(arrived, peer, -1.0))
        return link.data + 0.0

    owners = {"link": link, "peer": peer, "color": color}
    return Case(prepare, step, owners=owners)


def broken() -> Case:
    return build(on_device=False)


def mended() -> Case:
    return build(on_device=True)


museum.exhibit("aiter-3928").compare(broken, mended)

# %% [markdown]
"""
#### Both ranks hang in the replay

*loud on a GPU*, [sgl-project/sglang#31852](https://github.com/sgl-project/sglang/issues/31852)

On one GPU the graph of a diffusion model worked. On two, with a collective inside, both ranks hung
in replay(): the number of the operation was part of the recording, and no longer met the peer's.

**The mend.** Keep such collectives out of the graph, or use a transport that counts on the device.
"""


# %% id="sglang-31852" tags=["nbval-check-output"]
def build(on_device: bool) -> Case:
    group = SimpleNamespace(sequence=0.0, mailbox=torch.zeros(2))
    x, number = torch.zeros(1), torch.zeros(1)

    def prepare(i: int) -> None:
        x.fill_(10.0 * (1 + i))
        group.sequence = float(i)  # the peer counts along
        number.fill_(group.sequence)

    def step() -> torch.Tensor:
        sent = number if on_device else group.sequence
        group.mailbox[:1] = x
        group.mailbox[1:] = sent
        return group.mailbox.clone()

    def read(mailbox: torch.Tensor) -> str:
        came = mailbox[1] == group.sequence
        return f"{mailbox[0].item():.0f}" if came else "the peer waits for ever"

    owners = {"group": group, "x": x, "number": number}
    return Case(prepare, step, owners=owners, read=read)


def broken() -> Case:
    return build(on_device=False)


def mended() -> Case:
    return build(on_device=True)


museum.exhibit("sglang-31852").compare(broken, mended)

# %% [markdown]
"""
### Silent eager
"""

# %% [markdown]
"""
#### Skipped because it mutates its input

*silent on a GPU*, [flashinfer-ai/flashinfer#403](https://github.com/flashinfer-ai/flashinfer/issues/403), [pytorch/pytorch#124506](https://github.com/pytorch/pytorch/issues/124506)

torch.compile was asked for graphs and skipped them 'due to mutated inputs', as the rotation of the
positions works in place. The program ran as before, eagerly. Here a piece is skipped that way
inside of a capture of your own.

**The mend.** The variant that returns a new tensor; and a test that counts the kernels of the
graph.
"""


# %% id="flashinfer-403" tags=["nbval-check-output"]
def build(in_place: bool) -> Case:
    q, angle = torch.zeros(2), torch.tensor([2.0, 3.0])

    def prepare(i: int) -> None:
        q.fill_(1.0 + i)

    def rotate() -> torch.Tensor:
        return q.mul_(angle) if in_place else q * angle

    def skipping(function: Callable[[], torch.Tensor]) -> torch.Tensor:
        if not in_place:
            return function()
        with cuda.stream(cuda.default_stream()):  # no graph for this one
            return function()

    def step() -> torch.Tensor:
        return skipping(rotate) + 1

    return Case(prepare, step, owners={"q": q, "angle": angle})


def broken() -> Case:
    return build(in_place=True)


def mended() -> Case:
    return build(in_place=False)


museum.exhibit("flashinfer-403").compare(broken, mended)

# %% [markdown]
"""
#### An empty graph

*silent on a GPU*, [pytorch/pytorch#124506](https://github.com/pytorch/pytorch/issues/124506)

The report asks for a way to fail hard, since a fallback is noted in a log at best. The extreme of
it is a capture in which nothing is launched: here because a result was cached in the warm-up.
PyTorch warns of an empty graph.

**The mend.** Call the work itself in the step; assert that the graph has as many kernels as you
expect.
"""


# %% id="pytorch-124506" tags=["nbval-check-output"]
def build(cached: bool) -> Case:
    x = torch.zeros(2)
    results: dict[str, torch.Tensor] = {}

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        if cached and "out" in results:
            return results["out"]
        results["out"] = x * 10
        return results["out"]

    return Case(prepare, step, owners={"x": x, "results": results})


def broken() -> Case:
    return build(cached=True)


def mended() -> Case:
    return build(cached=False)


museum.exhibit("pytorch-124506").compare(broken, mended)

# %% [markdown]
"""
#### The ceiling is not in the list

*silent on a GPU*, [vllm-project/vllm-ascend#16049](https://github.com/vllm-project/vllm-ascend/issues/16049), [vllm-project/vllm#40734](https://github.com/vllm-project/vllm/issues/40734)

A server took up to 12 requests, and sizes were recorded in steps of 8. Batches of 9 to 12 ran
eagerly: 73 tokens a second where padding to 16 gave 500. Nothing in the log said so.

**The mend.** The ceiling belongs into the list, and a fallback into the log.
"""


# %% id="vllm-ascend-16049" tags=["nbval-check-output"]
def build(sizes: tuple[int, ...]) -> Case:
    weight, x = torch.eye(2) * 3, torch.zeros(12, 2)

    def prepare(i: int) -> bool:
        size = 12 if i == 2 else 8
        x.zero_()
        x[:size] = 1.0 + i
        return size <= max(sizes)  # whether there is a graph for it

    def step() -> torch.Tensor:
        return (x @ weight).relu() + 1

    def read(out: torch.Tensor) -> torch.Tensor:
        return out[0]

    return Case(prepare, step, owners={"x": x, "weight": weight}, read=read)


def broken() -> Case:
    return build(sizes=(1, 2, 4, 8))


def mended() -> Case:
    return build(sizes=(1, 2, 4, 8, 12))


museum.exhibit("vllm-ascend-16049").compare(broken, mended)

# %% [markdown]
"""
### LoRA
"""

# %% [markdown]
"""
#### Right at first, garbled after a while

*silent on a GPU*, [sgl-project/sglang#26930](https://github.com/sgl-project/sglang/issues/26930)

A quantized model with an adapter wrote well for about 100 tokens and then garbled text, the same
each time, with graphs and never without. The report does not say why; this is one way to get that
picture.

**The mend.** The adapters of a batch are a tensor of indices in a fixed buffer.
"""


# %% id="sglang-26930" tags=["nbval-check-output"]
def build(on_device: bool) -> Case:
    adapters = torch.tensor([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]])
    batch = SimpleNamespace(x=torch.ones(2, 2), first=0, second=0)
    chosen = torch.zeros(2, dtype=torch.int64)

    def prepare(i: int) -> None:
        batch.first, batch.second = [(1, 0), (1, 0), (1, 2), (0, 2)][i]
        chosen.copy_(torch.tensor([batch.first, batch.second]))

    def step() -> torch.Tensor:
        if on_device:
            return batch.x + adapters[chosen]
        delta = torch.stack((adapters[batch.first], adapters[batch.second]))
        return batch.x + delta

    owners = {"batch": batch, "adapters": adapters, "chosen": chosen}
    return Case(prepare, step, owners=owners)


def broken() -> Case:
    return build(on_device=False)


def mended() -> Case:
    return build(on_device=True)


museum.exhibit("sglang-26930").compare(broken, mended)

# %% [markdown]
"""
#### Many adapters at once

*silent on a GPU*, [sgl-project/sglang#29157](https://github.com/sgl-project/sglang/issues/29157)

With five adapters and many requests at once most answers collapsed into one repeated sign; without
graphs the same load was clean. The report does not say why; this is one way to get there.

**The mend.** A padded row has no adapter, and that is written at each step.
"""


# %% id="sglang-29157" tags=["nbval-check-output"]
def build(pad: bool) -> Case:
    fixed = SimpleNamespace(adapter=torch.zeros(4, dtype=torch.int64))
    batch, x = SimpleNamespace(), torch.ones(4)

    def prepare(i: int) -> None:
        live = [4, 4, 2, 3][i]
        adapter = torch.zeros(4, dtype=torch.int64)  # 0 is no adapter
        adapter[:live] = torch.tensor([1, 2, 1, 2])[:live]
        rows = 4 if pad else live
        fixed.adapter[:rows].copy_(adapter[:rows])
        batch.adapter = adapter if i else fixed.adapter

    def step() -> torch.Tensor:
        wanted = torch.nn.functional.one_hot(batch.adapter, 3)
        per_adapter = wanted.sum(0)  # rows that share one product
        return x * 10 + (wanted * per_adapter).sum(1)

    owners = {"batch": batch, "fixed": fixed}
    return Case(prepare, step, owners=owners, read=lambda out: out[:2])


def broken() -> Case:
    return build(pad=False)


def mended() -> Case:
    return build(pad=True)


museum.exhibit("sglang-29157").compare(broken, mended)

# %% [markdown]
"""
#### Recorded without the adapter

*silent on a GPU*, [vllm-project/vllm#15090](https://github.com/vllm-project/vllm/issues/15090)

Graphs were recorded for a dummy batch whose mapping said adapter 0 for each token; the indices that
arrived were a mixture of -1, no adapter, and 0. What such a graph does for adapters depends on what
was active then.

**The mend.** Record with the adapters' kernels inside and switch on the device, or keep a second
set of graphs.
"""


# %% id="vllm-15090" tags=["nbval-check-output"]
def build(always: bool) -> Case:
    lora = SimpleNamespace(active=0)
    x, a, b = torch.ones(1, 2), torch.ones(2, 1), torch.ones(1, 2)
    weight, switch = torch.eye(2), torch.zeros(1)

    def prepare(i: int) -> None:
        lora.active = 0 if i < 2 else 1  # a dummy batch is recorded
        switch.fill_(float(lora.active))
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        if always:
            return x @ weight + switch * (x @ a @ b)
        if lora.active:
            return x @ weight + x @ a @ b
        return x @ weight

    owners = {"lora": lora, "x": x, "a": a, "b": b, "switch": switch}
    return Case(prepare, step, owners=owners)


def broken() -> Case:
    return build(always=False)


def mended() -> Case:
    return build(always=True)


museum.exhibit("vllm-15090").compare(broken, mended)

# %% [markdown]
"""
### Memory
"""

# %% [markdown]
"""
#### Memory that grows with each capture

*silent on a GPU*, [pytorch/pytorch#83461](https://github.com/pytorch/pytorch/issues/83461), [pytorch/pytorch#99196](https://github.com/pytorch/pytorch/issues/99196)

A process that captured again and again took more memory each time: cuBLAS made a new workspace for
each graph, although it was called through one handle.

**The mend.** One workspace, made before the first capture.
"""


# %% id="pytorch-83461" tags=["nbval-check-output"]
def build(one: bool) -> Case:
    x, workspaces = torch.zeros(256), []
    if one:
        workspaces.append(torch.zeros(256))

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        if not one:
            workspaces.append(torch.zeros(256))
        workspace = workspaces[-1]
        workspace.copy_(x)
        return workspace * 2

    owners = {"x": x, "workspaces": workspaces}
    return Case(prepare, step, owners=owners, read=lambda out: out[:1])


def broken() -> Case:
    return build(one=False)


def mended() -> Case:
    return build(one=True)


museum.exhibit("pytorch-83461").compare(broken, mended)

# %% [markdown]
"""
#### Intermediates that somebody holds

*silent on a GPU*, [sgl-project/sglang#8538](https://github.com/sgl-project/sglang/issues/8538), [vllm-project/vllm#17462](https://github.com/vllm-project/vllm/issues/17462)

Memory ran out while graphs were captured. The reports do not name this cause; a reference that
keeps blocks of a pool in use is one way to get there.

**The mend.** Keep outputs only, and as few as possible; let everything else go before the next
capture.
"""


# %% id="sglang-8538" tags=["nbval-check-output"]
def build(keep: bool) -> Case:
    x, kept = torch.zeros(256), []

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        hidden = x * 2
        if keep:
            kept.append(hidden)  # for a look at it later
        return hidden + 1

    owners = {"x": x, "kept": kept}
    return Case(prepare, step, owners=owners, read=lambda out: out[:1])


def broken() -> Case:
    return build(keep=True)


def mended() -> Case:
    return build(keep=False)


museum.exhibit("sglang-8538").compare(broken, mended)

# %% [markdown] id="not-shown"
"""
## What is not in the museum

Some reports have no exhibit, because a CPU cannot show them. Something that only looks like them would be worse than a
gap:
"""

# %% tags=["nbval-check-output"]
import textwrap

for gap in museum.NOT_SHOWN:
    print(textwrap.fill(gap.what, 78))
    print("   ", ", ".join(gap.reports))
    print(textwrap.indent(textwrap.fill(gap.why, 74), "    "))

# %% [markdown]
"""
The garbage collections can be looked at, because they are work of the host alone. PyTorch used to collect before each
capture. A collection goes through every object of the process, and a server has many:
"""


# %%
def seconds(captures: int, collect_each: bool) -> float:
    start = time.perf_counter()
    gc.collect()
    for _ in range(captures):
        if collect_each:
            gc.collect()
        with cuda.graph(cuda.CUDAGraph()):
            torch.zeros(2)
    return time.perf_counter() - start


objects = [[] for _ in range(300_000)]
each, once = seconds(10, collect_each=True), seconds(10, collect_each=False)
print(
    f"10 captures: {each:.2f} s with a collection before each,",
    f"{once:.2f} s with one before all",
)
del objects

# %% [markdown]
"""
So engines collect once, and keep the collector off while they capture. That is the mend of two loud exhibits as well,
under *allocator or garbage collector*: a collection in the middle of a capture ends what must not end there.

## Each input of the engine, broken in turn

Back to the engine. Its graphs read five tensors: three inputs and two of the attention's metadata. Each of them can be
mistreated in four ways. That makes 20 engines, and none of them raises by itself:

- **omitted**: it is not copied;
- **rebound**: the attribute gets the new tensor, instead of the memory getting the new values;
- **resized**: a larger buffer takes its place;
- **stale padding**: only the live rows are copied.
"""


# %%
def omitted(owner, name: str, value: torch.Tensor, batch) -> None:
    pass


def rebound(owner, name: str, value: torch.Tensor, batch) -> None:
    setattr(owner, name, value)


def resized(owner, name: str, value: torch.Tensor, batch) -> None:
    larger = value.new_zeros(2 * len(value), *value.shape[1:])
    larger[: len(value)].copy_(value)
    setattr(owner, name, larger)


def stale_padding(owner, name: str, value: torch.Tensor, batch) -> None:
    getattr(owner, name)[: batch.size].copy_(value[: batch.size])


def copied(owner, name: str, value: torch.Tensor, batch) -> None:
    getattr(owner, name)[: batch.padded_size].copy_(value)


INPUTS = ("input_ids", "positions", "out_loc")
METADATA = ("page_table", "seq_lens")


def what_is_found(field: str, mistreat: Callable) -> list:
    """The findings of an engine that handles one field wrongly. A small random model will do."""
    small = LLM(
        "random:llama",
        device="cpu",
        graph="tape",
        cuda_graph_bs=[4],
        max_running_req=4,
        max_seq_len_override=64,
        sanitize=True,
    )
    few = SamplingParams(max_tokens=4, ignore_eos=True)
    small.generate([[1, 2, 3], [4, 5], [6], [7, 8]], few)  # all four rows used
    fixed, attention = (
        small.engine.runner.buffer,
        small.engine.context.attn_backend,
    )

    def fill(owner, source, names: tuple[str, ...], batch) -> None:
        for name in names:
            bring = mistreat if name == field else copied
            bring(owner, name, getattr(source, name), batch)

    fixed.copy_from = lambda batch: fill(fixed, batch, INPUTS, batch)
    attention.prepare_for_replay = lambda batch: fill(
        attention.fixed, batch.attn_metadata, METADATA, batch
    )
    try:
        small.generate([[1, 2, 3], [4, 5], [6, 7, 8, 9]], few)
    except FindingsError as error:
        return list(error.report)
    finally:
        small.shutdown()
    return []


# %%
faults = (omitted, rebound, resized, stale_padding)
found = {
    field: {fault.__name__: what_is_found(field, fault) for fault in faults}
    for field in INPUTS + METADATA
}
clean = what_is_found("none of them", omitted)

# %% tags=["nbval-check-output"]
for field, row in found.items():
    kinds = [
        dict.fromkeys(
            f"{finding.kind} of {finding.tensor}" for finding in findings
        )
        for findings in row.values()
    ]
    print(f"{field}:", "; ".join(" and ".join(names) for names in kinds))
print("without a fault:", clean or "nothing found")

# %%
viz.outcomes(
    {
        field: {
            name.rpartition("_")[2]: findings[0].kind.partition("-")[0]
            for name, findings in row.items()
        }
        for field, row in found.items()
    },
    caption="Rows: what the graph reads. Columns: how it was mistreated, the last "
    "one in its padded rows. Stale is stale-input, moved is moved-address.",
)

# %% [markdown]
"""
Every one is found under its own name, and the engine as it is gives no alarm. Note the last column. The stale rows are
rows that *nobody asked for*, and all texts might have been right that evening.

## Padding that gets in

Now every input is copied, and the *model* is at fault. Somebody scales the result of attention by the largest value in
the batch, as quantized models do. With three requests in a graph of four rows, the fourth row has a say in that.

Comparing with eager finds nothing, because eager runs on the same padded batch. So a checked step is replayed once more,
with something else in the padding. Dummy rows become copies of a live row, or get the smallest and the largest values
that an input may have; the dummy's page of the cache, and the slots behind each request's last token, become NaN or a
huge number. Nothing live may change:
"""


# %%
def scaled_attention(backend) -> None:
    """Let decode steps divide what attention returns by its largest value."""
    plain = backend.forward

    def forward(q, k, v, layer_id, batch):
        out = plain(q, k, v, layer_id, batch)
        return out / out.abs().amax() if batch.is_decode else out

    backend.forward = forward


padded = LLM(
    "random:llama",
    device="cpu",
    graph="tape",
    cuda_graph_bs=[4],
    max_running_req=4,
    max_seq_len_override=64,
    sanitize=True,
)
scaled_attention(padded.engine.context.attn_backend)
runner = padded.engine.runner
runner.graph_map[4] = runner.capture(4)

# %% tags=["nbval-check-output"]
few = SamplingParams(max_tokens=4, ignore_eos=True)
padded.generate([[1, 2, 3], [4, 5], [6], [7, 8]], few)
print("four requests in four rows: nothing found")
try:
    padded.generate([[1, 2, 3], [4, 5], [6, 7, 8, 9]], few)
except FindingsError as error:
    for finding in error.report:
        print(f"three in four: {finding.kind} of {finding.tensor}")
        print("why:", finding.why)
padded.shutdown()

# %% [markdown]
"""
The text of a request would have depended on what the dummy was given. Each place has three other values, and a replay
for each of them would make a checked step dear. So they take turns: a step tries one value in all places at once, and
only if something changes are the places told apart.

## How well does it name them?

An example proves little. So here is the count over the whole gallery: for how many exhibits are the findings of the
broken case exactly those that were expected, each kind and each name, and for how many mended ones is there a finding
that should not be?
"""

# %% tags=["nbval-check-output"]
named = alarms = 0
for exhibit in museum.exhibits():
    report = exhibit.broken().sanitize()
    named += exhibit.findings == tuple((f.kind, f.tensor) for f in report)
    alarms += bool(exhibit.mended().sanitize())
print(f"{named} of {len(museum.exhibits())} named, {alarms} false alarms")

# %%
count = Counter(
    (exhibit.topic, "silent" if exhibit.silent else "loud")
    for exhibit in museum.exhibits()
)
viz.outcomes(
    {
        topic: {voice: str(count[topic, voice]) for voice in ("silent", "loud")}
        for topic in museum.TOPICS
    },
    caption="Exhibits of each class, silent and loud on a GPU. What was read in "
    "public is no census: a fault that nobody noticed was not reported.",
)

# %% [markdown]
"""
All named sounds better than it is: the exhibits were written with the sanitizer at hand, and where it missed one it was
mended. What counts is that the causes are found by comparison and not by a list of patterns, so a fault that is in no
museum gets a name as well, if it shows in the rounds that you run.

A checker that cries wolf is switched off. So it also went over code that nobody wrote for it: the decode steps of
transformers' models that replay bit for bit ([chapter 10](10_a_graph_on_a_cpu.ipynb)), where every finding would be a
false alarm. And over the engine itself: both model families, pages of 1 to 64 tokens, several lists of sizes, the tape
and the rerun, greedy and sampled requests that join and leave. `benchmarks/sanitizer.py` counts, and takes the time:
"""

# %%
others = viz.measured("sanitizer")
step = others["step"]
ratio = max(
    step["checked_ms"] / step["eager_ms"],
    step["padded_checked_ms"] / step["padded_eager_ms"],
)
print(
    f"{others['findings']} false alarms on",
    f"{others['clean'] + others['findings']} models of transformers",
)
engine = others["engine"]
print(
    f"{engine['findings']} in {engine['steps']} steps of the engine,",
    f"{engine['padded_rows']} rows of them padding,",
    f"in {engine['configurations']} configurations",
)
print(f"a checked step of SmolLM2 takes as long as {ratio:.1f} eager steps")

# %% [markdown]
"""
Run it on your own step: `onelaunch check path.py:function` for a function that returns `(prepare, step)`.
"""

# %% [markdown]
"""
## What the sanitizer cannot see

It runs on one processor that does one thing after the other. A clean report says that the *recording* is right: for
the inputs that your `prepare` brought, in the rounds that it ran. It says nothing of this:

- **Races between streams, and with the host.** Two captured streams without an edge between them may run in either
  order on a GPU; here they run in the order of your code. A host that refills a pinned buffer while it is still being
  copied, or reads an output before the replay is done, is right here by construction. *What to do:* on a GPU, synchronize
  before and after each replay in a test; if that changes a result, it is a race with the host. Capture the same step on
  one stream; if that changes it, it is a race between streams. Within a kernel `compute-sanitizer --tool racecheck` looks.
- **What the driver does.** Instantiation, upload, memory that is remapped, a module that is unloaded, an address that
  the allocator hands to somebody else. The sanitizer says that memory has no owner (`freed-address`); it cannot say
  what will be there. *What to do:* `check_input_liveness=True` in `torch.cuda.graph`, where your PyTorch has it, and
  `compute-sanitizer` for addresses that belong to no allocation.
- **Kernels outside PyTorch.** A Triton kernel that is launched by hand, an extension that gets a raw pointer, cuBLAS's
  workspace: what bypasses the dispatcher is not on the tape. *What to do:* wrap it as a custom operator, and say what it
  writes; then it is.
- **Other ranks.** A collective needs every rank to replay the same graphs in the same order. One process sees one rank.
  *What to do:* log the sequence of graph keys on each rank and compare the logs.
- **Rounds that were not run.** A branch at 1,024 tokens is found if a round goes past 1,024 tokens. *What to do:* let
  `prepare(i)` bring the edges: the longest request, the smallest batch, a batch of a size that was not recorded, a
  request that ends.
- **Padding that you do not declare.** Which rows are live only you know. What is not declared is not guessed, because a
  buffer that is written in part, such as a KV cache, is no fault.
- **Wrong in the same way eagerly.** If the step is wrong without a graph as well, the two agree.

## Common mistakes

- **Testing with the inputs of the capture.** Every fault in the gallery is invisible on them.
- **Taking fluent text for right text.** Compare tokens with a run without graphs.
- **Mending the symptom.** A synchronize makes some wrong values right, because it changes what the allocator does. The
  finding is the same after it.
- **Copying live rows only.** A padded row runs like any other; see the exhibits under *padding leaks*.
- **Making a buffer larger when a batch does not fit.** That turns a shape error into a moved address.
- **Keeping the fallback quiet.** A step that runs eagerly is right and slow, and nobody looks for it.

## How to explain it, in three sentences

A graph replays kernels with the addresses and numbers of one run, so everything that Python would have decided anew is
as it was, and nothing checks that it still fits. The values are of the right type and shape, so nothing raises; what is
wrong is only what they mean. To find it, run the step eagerly from the same state beside the replay, write down both,
and look for the first kernel that was given something else.

## Questions you may be asked

<details>
<summary>A service answers well alone and garbles under load. Where do you look first?</summary>

At padding: alone, the batch has the size that was recorded. Slots of padded rows, lengths of padded rows, and reductions
over rows. Then at what is copied for live rows only.

</details>

<details>
<summary>The same service is wrong only after an hour. And then?</summary>

Something moved or was recorded again: weights that were reloaded, a cache that was given back and taken anew, a page table
row that changed hands. Compare the addresses that the graph holds with those of the owners.

</details>

<details>
<summary>Which of these faults would an assertion have caught, and which would none?</summary>

Addresses can be asserted before each replay: `data_ptr()` of each input against the recorded one. A stale value cannot,
without knowing the right one. That is why the comparison is with an eager run and not with a rule.

</details>

<details>
<summary>Why not simply run every step twice in production?</summary>

It costs more than the graph saves. In a test, or for one step in a thousand, it is cheap; and most of these faults are
in the code and not in the data, so a few rounds with well-chosen inputs find them.

</details>

<details>
<summary>Why is a loud fault the better one?</summary>

It names the moment. A refused capture costs an afternoon; a frozen length cost half of a benchmark's score
(huggingface/transformers#45323) before somebody looked.

</details>

## Summary

- A replay goes wrong silently when memory, a number, a branch, padding or a fallback is not what Python would make of it now.
- Run eagerly from the same state beside the replay, and compare what both were given.
- What a capture refuses is the lesser evil.
- Races, drivers, foreign kernels and other ranks stay invisible on a CPU.

## Exercises

1. In *Slot -1 is a slot* set the dummy to 7. What does the sanitizer say, and whose key is lost?
2. Mend *Each token overwrites the same place* in another way than the exhibit does.
3. Write an exhibit of your own: a step that reads the clock. Which finding do you expect?
4. Take a loud exhibit of *forbidden in capture* and make it silent without mending it.
5. Eight runners with a silent bug each, for you to name, and judged: `exercises/ex11_silent_bugs.ipynb`.

## Further reading

- The reports. Each exhibit links to its own; the discussions show how long such a thing can hide.
- `src/onelaunch/museum/`: one module for each exhibit. `src/onelaunch/sanitizer/`: how the findings are made.
- PyTorch's documentation, "CUDA semantics", on the constraints of CUDA graphs.
- The [references](../book/references.md).
"""

# %%
careful.shutdown()
