# %% [markdown]
"""
# A small LLM engine

**Who this is for.** You have called `generate` on some model and want to see what a server does underneath: how the
work of many people's prompts becomes one step after another.

**After this chapter** you can say what prefill and decode are, find a token's key in a paged KV cache by hand, and
explain why the batch of a server changes at every step. The later chapters record such a step, so what varies here is
what a recording must cope with.

*About 40 minutes. Medium. You need Python and a rough idea of attention: a token looks at the tokens before it.*

<details>
<summary>Self-test: if you can answer these, skip to the next chapter</summary>

1. How many tokens does one decode step compute for a batch of eight requests?
2. What does the KV cache hold, and what would decoding cost without it?
3. A page holds 16 tokens, a request has 40. How many pages, and in which of its pages is token 37?
4. Why can a request's text not depend on who shares its batch?

**Answers.** 1: eight, one each. 2: keys and values of every token so far; without it each step would compute the
whole text again. 3: three; token 37 is in its third page (37 // 16 = 2, counted from 0) at offset 5. 4: every row of
the batch only attends to its own pages, and its random draws come from its own generator.

</details>
"""

# %%
from onelaunch import LLM, SamplingParams, viz

llm = LLM("smollm2-135m", num_page_override=64, max_running_req=4)
engine, config = llm.engine, llm.config

# %% [markdown]
"""
## One request, step by step

`generate` hides a loop. Here is the loop: `submit` queues a request, and every `step` runs the model once.
"""

# %% tags=["nbval-check-output"]
prompt = "The capital of France is"
request = llm.submit(prompt, SamplingParams(max_tokens=5))
print("prompt tokens:", request.req.input_ids)

while (batch := llm.step()) is not None:
    ids, positions = batch.input_ids.tolist(), batch.positions.tolist()
    print(f"{batch.phase:7}  input_ids={ids}  positions={positions}")
print("text:", repr(request.text))

# %% [markdown]
"""
The first step is the [**prefill**](../book/glossary.md#prefill): it computes all tokens of the prompt at once and
yields the first new token. Every step after it is a **decode step**: it computes one token, the newest, and yields
the next.

Three things went into each step, and you will meet them in every chapter:

- `input_ids`: which token,
- `positions`: where in its text it stands,
- `out_loc`: where in the cache its key and value are written. That is the next section.

Look at the shapes. A prefill's depends on the prompt. A decode step of one request always computes one token: same
shape, same operations, different values. This is why **decode is what one records**.

## Why there is a cache

A new token attends to all tokens before it. For that it needs one *key* and one *value* vector of each of them, in
each layer. They do not change once computed, so the engine keeps them: the [**KV
cache**](../book/glossary.md#kv-cache).

You can do without it. Then every step computes the whole text again. The next cell does both and compares.
"""

# %% tags=["nbval-check-output"]
ids = llm.tokenizer.encode(prompt)
without_cache = list(ids)
computed = 0
for _ in range(12):
    computed += len(without_cache)
    # A request of one new token is a prefill and nothing else: everything is computed from scratch.
    (answer,) = llm.generate([without_cache], SamplingParams(max_tokens=1))
    without_cache += answer["token_ids"]

(answer,) = llm.generate([ids], SamplingParams(max_tokens=12))
print("same tokens:", ids + answer["token_ids"] == without_cache)
print("tokens computed without a cache:", computed)
print("tokens computed with a cache:   ", len(ids) + 11)

# %% [markdown]
"""
The cache is paid for in memory. Per token, it holds a key and a value for each layer and each key head:
"""

# %% tags=["nbval-check-output"]
layers, heads = config.num_hidden_layers, config.num_key_value_heads
per_token = 2 * layers * heads * config.head_dim * 4  # float32 has 4 bytes
print(f"2 x {layers} layers x {heads} heads x {config.head_dim} x 4 bytes")
print(f"is {per_token} bytes a token")
print(f"a text of 2048 tokens: {2048 * per_token / 2**20:.0f} MiB")

# %% [markdown]
"""
## Pages

Nobody knows how long an answer will be. If the cache set aside the longest possible text for each request, most of it
would stay empty. So the cache is cut into **pages** of a few tokens (16 here), and a request takes one more page
whenever its last one is full. vLLM brought this idea to LLM serving as *PagedAttention* ([arXiv
2309.06180](https://arxiv.org/abs/2309.06180)).

The pages of a request can lie anywhere. The [**page table**](../book/glossary.md#page-table) says where: row =
request, column = which of its pages, entry = page number. Three requests, running together:
"""

# %% tags=["nbval-check-output"]
texts = [
    "Once upon a time, in a village by the sea, there lived a girl "
    "who could talk to the gulls and",
    "The price of a CUDA Graph is",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
]
thirty = SamplingParams(max_tokens=30, ignore_eos=True)
running = [llm.submit(text, thirty) for text in texts]
for _ in range(12):
    batch = llm.step()

first = running[0].req.uid  # requests are numbered from here on
table = engine.context.page_table
for handle in running:
    req = handle.req
    pages = table.table[req.table_idx, : len(req.pages)].tolist()
    print(
        f"request {req.uid - first} in row {req.table_idx}: "
        f"{req.cached_len} tokens in pages {pages}"
    )

# %%
viz.page_table(
    table.table[:, :4].tolist(),
    seq_lens=[handle.req.cached_len for handle in running],
    rows=[handle.req.table_idx for handle in running],
    page_size=engine.page_size,
    num_pages=12,
    dummy_page=table.dummy_page,
)

# %% [markdown]
"""
To find a token's slot, divide: token `i` of a request is in its page `i // 16`, at offset `i % 16`. That is all that
`out_loc` is. Check it for the step that ran last:
"""

# %% tags=["nbval-check-output"]
for row, handle in enumerate(running):
    req = handle.req
    i = batch.positions[row].item()
    page, offset = req.pages[i // 16], i % 16
    slot, out_loc = page * 16 + offset, batch.out_loc[row].item()
    print(f"token {i}: page {page}, offset {offset}: slot {slot} = {out_loc}")

# %% [markdown]
"""
### Attention over pages

With the table, attention needs no long contiguous tensor. It gathers a request's pages and ignores what lies behind
its last token. This is the whole reference backend for one request in one layer:

```python
pages  = page_table[row, : ceil(length / page_size)]
keys   = k_cache[layer][pages].flatten(0, 1)[:length]     # [length, kv_heads, head_dim]
values = v_cache[layer][pages].flatten(0, 1)[:length]
out    = scaled_dot_product_attention(q, keys, values)
```

You can see that it is right, and it has two properties that will matter. It must know `length` as a Python number,
which on a GPU means asking the device and waiting for the answer. And its shapes depend on that number. **Neither can
be recorded**; a later chapter replaces it by a backend that can. The code is in
`src/onelaunch/attention/torch_backend.py`, about forty lines.

### The dummy request

One page more exists than the engine hands out, and one row more in the table. They belong to the [**dummy
request**](../book/glossary.md#dummy-request). When a recording is made for four requests and only three are running,
the fourth place has to be filled with *something* that computes and writes without doing harm. It writes into its own
page, which nobody reads.
"""

# %% tags=["nbval-check-output"]
dummy = engine.dummy_req
print("pages to hand out:", llm.num_pages)
print("pages in memory:  ", engine.context.kv_cache.k_cache.shape[1])
print(f"the dummy request: row {dummy.table_idx}, page {dummy.pages[0]}")

# %% [markdown]
"""
## Batches change at every step

Let the three requests run on, and add two more under way. The engine has room for four at a time
(`max_running_req=4`), so somebody has to wait. We write down who takes part in each step.
"""

# %% tags=["nbval-check-output"]
fourteen = SamplingParams(max_tokens=14, ignore_eos=True)
steps = []
while True:
    if len(steps) in (3, 6):
        llm.submit("Water boils at", fourteen)
    batch = llm.step()
    if batch is None:
        break
    steps.append((batch.phase, [req.uid - first for req in batch.reqs]))

for number, (phase, who) in enumerate(steps):
    if phase == "prefill" or number == 0 or who != steps[number - 1][1]:
        print(f"step {number:2}: {phase:7} of requests {who}")

# %%
viz.batch_timeline(steps)

# %% [markdown]
"""
This is [**continuous batching**](../book/glossary.md#continuous-batching): a request joins as soon as there is room
and leaves the moment it is done, and the others never wait for it to finish. It was introduced for LLM serving by
Orca (OSDI 2022). For a recording it means: the batch size is different from step to step, and so is every value in
it.

Two rules keep it safe here. A request is admitted only when the cache can promise all the pages it may ever need, so
nobody gets stuck half-way. And prompts are served in order: a short one that would fit does not overtake a long one
that is waiting.

## It must not matter who shares the batch

Request 0 above ran with two others, then three, then fewer. Its text has to be the same as if it had been alone.
"""

# %% tags=["nbval-check-output"]
for text, handle in zip(texts, running, strict=True):
    (alone,) = llm.generate(text, thirty)
    print("same as alone:", handle.token_ids == alone["token_ids"])
print("pages in use now:", llm.num_pages - engine.allocator.num_free)

# %% [markdown]
"""
## How fast it is

The engine has to be good before a graph can make it better, or the comparison means nothing. The same weights, the
same prompts, in turn, on one thread of a CPU; the grey bar is the time of the linear layers alone, which no engine
that runs them one by one can beat:
"""

# %%
viz.time_bars(viz.measured("generate"), threads=1)

# %% [markdown]
"""
What lies between the grey bar and the blue one is attention, all the small kernels, and the host's work. On a CPU
that is the smaller part. On a GPU, at small batch, it can be most of the step: GPT-2 on an H200 ran 3.7 times as fast
once a graph had taken over the host's part ([sources](../book/references.md)). To measure your own machine, run `make
bench`.

## Common mistakes

**Writing to the wrong slot.** Let every new key and value go to the slot of the token before. Nothing is out of
bounds, so nothing complains:
"""

# %% tags=["nbval-check-output"]
prepare_batch = engine.prepare_batch


def prepare_one_slot_off(batch):
    prepare_batch(batch)
    if batch.is_decode:
        batch.out_loc -= 1


engine.prepare_batch = prepare_one_slot_off
(broken,) = llm.generate([prompt], SamplingParams(max_tokens=12))
engine.prepare_batch = prepare_batch
print("right:", repr(llm.tokenizer.decode(answer["token_ids"])))
print("wrong:", repr(broken["text"]))

# %% [markdown]
"""
**Treating the last token as cached.** After a step, the newest token exists but its key does not; the *next* step
computes it. `cached_len` is therefore one less than the length of the text. Being off by one here reads a slot nobody
wrote.

**Forgetting to give pages back.** A request that ends early, or whose reader walks away, must return its pages at
once. The engine does it in a `finally`, and a test with random traffic counts that every page came back.

**Asking for more than there is.** A request that can never fit gets an error, and its neighbours do not notice:
"""

# %% tags=["nbval-check-output"]
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    four = SamplingParams(max_tokens=4)
    results = llm.generate([prompt, "", [1] * 1200], four)
for result in results:
    print(result.get("error") or repr(result["text"]))

# %% [markdown]
"""
## How to explain it, in three sentences

A prompt is computed in one prefill, and then every decode step computes one token for each running request, using
keys and values that the cache has kept. The cache is cut into pages, and a page table says which page holds which
part of which request, so memory is taken as texts grow and given back when they end. Requests join and leave between
steps, so the batch that a decode step sees is different every time, while the operations it runs stay the same.

## Questions you may be asked

<details>
<summary>Why is decoding bound by memory, and prefill by arithmetic?</summary>

Both read all weights once per step. A prefill uses them for hundreds of tokens, a decode step for one token per
request. So a decode step does little arithmetic per byte it reads; at batch 1 each weight is used for a single
multiplication and addition.

</details>

<details>
<summary>What does a larger page cost, and what does it save?</summary>

On average half of a request's last page is empty, so larger pages waste more. They make the table shorter and the
gather a copy of longer pieces. vLLM's default is 16 tokens.

</details>

<details>
<summary>Why does this engine reserve pages for the longest possible answer if it hands them out one by one?</summary>

To never have to stop a running request. Engines that admit more and take pages back by preemption use memory better
when answers end early, and pay with recomputation or swapping when they do not. mini-sglang reserves, vLLM preempts.

</details>

<details>
<summary>Which inputs of a decode step change from step to step, and which do not?</summary>

`input_ids`, `positions`, `out_loc`, the sequence lengths and the page table's entries change. The shapes (for a given
batch size), the weights and the place of the cache do not. A recording works because the second list holds everything
that must be fixed, and fails when something of the first list is not copied.

</details>

## Summary

- Prefill: many tokens, once. Decode: one token per request, over and over, always the same operations.
- A token's slot is `pages[i // page_size] * page_size + i % page_size`.
- The batch changes at every step; texts do not depend on it.
- One page and one row are kept for a dummy request, which will fill up recorded batches.

## Exercises

1. Set `num_page_override` so small that request 2 of the three has to wait, and predict the step in which it joins.
2. Predict `out_loc` of a prefill of 20 tokens in pages 5 and 2 before you print it.
3. Swap two entries in one row of the page table between two steps. Which tokens does attention see now? Is the text
   wrong?

## Further reading

- mini-sglang: `core.py` and `scheduler/` use the same names as this engine and add prefix caching.
- nano-vllm: the whole path of a request in four files.
- *Efficient Memory Management for Large Language Model Serving with PagedAttention*, [arXiv
  2309.06180](https://arxiv.org/abs/2309.06180).
- *Orca: A Distributed Serving System for Transformer-Based Generative Models*, OSDI 2022.
"""

# %%
llm.shutdown()
