# %% [markdown]
"""
# Exercise 13: Sampling inside the graph

A graph repeats what was recorded. A sampler must not repeat itself. Here you write a sampler that a capture accepts,
and record it so that every replay draws anew, and the same seed gives the same text.

*About 35 minutes. Medium. You need chapters [3](../notebooks/03_first_capture.ipynb) and
[4](../notebooks/04_what_a_capture_refuses.ipynb), and [sampling](../book/glossary.md#sampling) in the glossary; no
GPU.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex13_sampling_in_the_graph.ipynb`
judges all of it, and `--hint` helps.
"""

# %%
import torch
from torch import Generator, Tensor

from onelaunch import emulator as cuda
from onelaunch.grading import attempt, check

# %% [markdown]
"""
## The sampler

`sample(logits, temperatures, top_ks, generator)` chooses a token for each row.

- `logits`: `[batch, vocab]` float32, finite, and no two alike in a row.
- `temperatures`: `[batch]` float32. Where it is 0, the token is the one with the largest logit.
- `top_ks`: `[batch]` int64, from 1 to `vocab`. Only the row's so many largest logits may be drawn.
- Otherwise token `i` of those is drawn with the probability that a softmax over `logits / temperature` of those gives.
- All random numbers come from `generator`, which each call advances. PyTorch's own generator stays as it is, and
  nothing is seeded.
- Returns `[batch]` int64, and changes none of its arguments.
- It can be captured: temperatures and limits differ from row to row and from replay to replay, and stay on the device.

A draw needs no loop and no host. Divide each probability by a number of its own that `exponential_` has drawn, and
take the largest: token `i` wins with its probability. `torch.multinomial` does it, too.
"""


# %% tags=["answer:sample"]
def sample(
    logits: Tensor, temperatures: Tensor, top_ks: Tensor, generator: Generator
) -> Tensor:
    """A token for each row, within its limits."""
    # ANSWER
    ranked = logits.sort(dim=-1, descending=True).values
    least = ranked.gather(1, top_ks[:, None] - 1)  # [batch, 1]
    kept = logits.masked_fill(logits < least, float("-inf"))
    probs = (kept / temperatures.clamp(min=1e-4)[:, None]).softmax(dim=-1)
    noise = torch.empty_like(probs).exponential_(generator=generator)
    drawn = (probs / noise.clamp(min=1e-20)).argmax(dim=-1)
    return torch.where(temperatures == 0, logits.argmax(dim=-1), drawn)


# %% [markdown]
"""
3000 draws from four tokens, with `top_k` 3 and temperature 1. How often should each come?
"""

# %% tags=["try"]
with attempt():
    row = torch.tensor([1.0, 0.0, 2.0, -1.0])
    many = row.expand(3000, 4), torch.ones(3000), torch.full((3000,), 3)
    drawn = sample(*many, Generator().manual_seed(13))
    share = drawn.bincount(minlength=4) / 3000
    print("yours", [round(one, 2) for one in share.tolist()])
    print("right", [0.24, 0.09, 0.67, 0.0], "and a little off, by chance")

# %% tags=["check:1"]
check("ex13", 1)

# %% tags=["check:2"]
check("ex13", 2)

# %% tags=["check:3"]
check("ex13", 3)

# %% [markdown]
"""
## The graph

`record(logits, temperatures, top_ks, generator)` records your `sample` on these tensors with `cuda.graph`.

- Returns the graph and the tensor of tokens that its replays write, as a tuple.
- A graph advances only generators it knows of. `graph.register_generator_state(generator)`, before the capture, makes
  this one known.
- Each replay draws anew from `generator`, for what `logits`, `temperatures` and `top_ks` hold then. After
  `generator.manual_seed(s)`, replays write what calls of `sample` would return after it.
"""


# %% tags=["answer:record"]
def record(
    logits: Tensor, temperatures: Tensor, top_ks: Tensor, generator: Generator
) -> tuple[cuda.CUDAGraph, Tensor]:
    """A graph of sample, and the tokens that it writes."""
    # ANSWER
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with cuda.graph(graph):
        tokens = sample(logits, temperatures, top_ks, generator)
    return graph, tokens


# %% [markdown]
"""
Three replays of one graph should not be three times the same, and the same seed should give the same three:
"""

# %% tags=["try"]
with attempt():
    generator = Generator()
    flat = torch.arange(400.0).view(4, 100) / 1000
    inputs = flat, torch.ones(4), torch.full((4,), 100)
    graph, tokens = record(*inputs, generator)
    for seed in (7, 7, 8):
        generator.manual_seed(seed)
        print(f"seed {seed}:", end=" ")
        for _ in range(3):
            graph.replay()
            print(tokens.tolist(), end=" ")
        print()

# %% tags=["check:4"]
check("ex13", 4)

# %% tags=["check:5"]
check("ex13", 5)

# %% tags=["check:6"]
check("ex13", 6)

# %% [markdown]
"""
The engine of this book samples outside of its graphs. Then one graph serves every kind of sampling, and a request can
have a generator of its own. Inside, the launches of the sampler are saved as well.
"""
