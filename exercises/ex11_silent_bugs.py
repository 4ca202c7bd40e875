# %% [markdown]
"""
# Exercise 11: find the silent bug

Eight runners. Each is recorded and replayed without an error, and something is wrong with each. You say what, as the
sanitizer would. Then you mend two of them.

*About 50 minutes. Medium. You need [chapter 11](../notebooks/11_the_museum.ipynb); no GPU.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex11_silent_bugs.ipynb` judges all of
it, and `--hint` helps.

A runner is a `Case`: `prepare(i)` is the host's code before step `i`, `step()` is what is captured. `prepare(0)` and one
`step()` are the warm-up, then `step()` is captured; from `i = 1` on there is `prepare(i)` and a replay. `owners` gives
the tensors their names.

A diagnosis is a function without arguments that returns `(kind, name)`, two strings. The kind is one of

| kind | what is wrong |
|---|---|
| `stale-input` | a tensor that the graph reads was not filled for this step |
| `moved-address` | a name has another tensor now, which the graph does not know |
| `overwritten-output` | what an earlier replay wrote was kept, and a later one wrote over it |
| `frozen-value` | a number of Python's was written into the graph |
| `frozen-branch` | a decision of Python's was |
| `padding-leak` | a live row depends on what padding holds |
| `lazy-init-recorded` | something that should happen once happens in each replay |
| `silent-eager` | steps run without a graph, and nobody is told |

The name is that of the tensor or of the Python value, from its owner on, such as `"state.x"`; where nothing has that
fault's name (a step runs without a graph), it is `None`. All eight kinds occur once.

Look, and decide. Only then compare: `runner_1().eager()` is what should come out of each step, `.replayed()` what does,
and `.sanitize()` names the fault. An answer that asks the sanitizer is right, and teaches you less.
"""

# %%
from types import SimpleNamespace

import torch

from onelaunch.grading import attempt, check
from onelaunch.museum import Case

# %% [markdown]
"""
## Runner 1: positions

A step looks up a token and its position. There are buffers, and a batch that knows this step's values.
"""


# %%
def runner_1() -> Case:
    fixed = SimpleNamespace(
        ids=torch.zeros(2, dtype=torch.int64),
        positions=torch.zeros(2, dtype=torch.int64),
    )
    batch = SimpleNamespace()
    table = torch.arange(16.0)

    def prepare(i: int) -> None:
        ids, positions = torch.tensor([i, 5]), torch.tensor([2 + i, 7 + i])
        fixed.ids.copy_(ids)
        if i == 0:
            fixed.positions.copy_(positions)
            ids, positions = fixed.ids, fixed.positions
        batch.ids, batch.positions = ids, positions

    def step() -> torch.Tensor:
        return table[batch.ids] + 10 * table[batch.positions]

    return Case(prepare, step, owners={"fixed": fixed, "batch": batch})


# %% tags=["try"]
print("eager:   ", runner_1().eager())
print("replayed:", runner_1().replayed())


# %% tags=["answer:diagnosis_1"]
def diagnosis_1() -> tuple[str, str | None]:
    """What is wrong with `runner_1`: the kind, and the name."""
    # ANSWER
    return "stale-input", "fixed.positions"


# %% [markdown]
"""
## Runner 2: a table of pages

`pages` has the pages of one request, for each step. Page 0 is the dummy's; it holds 0.
"""


# %%
def runner_2(pages=((1,), (1, 2), (1, 2, 3), (1, 2, 3, 4))) -> Case:
    fixed = SimpleNamespace(table=torch.zeros(2, dtype=torch.int64))
    cache = torch.tensor([0.0, 1.0, 10.0, 100.0, 1000.0])

    def prepare(i: int) -> None:
        if len(pages[i]) > len(fixed.table):
            fixed.table = torch.zeros(len(pages[i]), dtype=torch.int64)
        fixed.table.zero_()
        fixed.table[: len(pages[i])] = torch.tensor(pages[i])

    def step() -> torch.Tensor:
        return cache[fixed.table].sum()

    owners = {"fixed": fixed, "cache": cache}
    return Case(prepare, step, owners=owners, rounds=len(pages) - 1)


# %% tags=["try"]
print("eager:   ", runner_2().eager())
print("replayed:", runner_2().replayed())


# %% tags=["answer:diagnosis_2"]
def diagnosis_2() -> tuple[str, str | None]:
    """What is wrong with `runner_2`: the kind, and the name."""
    # ANSWER
    return "moved-address", "fixed.table"


# %% tags=["check:1"]
check("ex11", 1)

# %% [markdown]
"""
## Runner 3: temperature

Each step may be sampled at a temperature of its own.
"""


# %%
def runner_3() -> Case:
    state = SimpleNamespace(logits=torch.zeros(3), temperature=1.0)

    def prepare(i: int) -> None:
        state.logits.copy_(torch.tensor([1.0, 2.0, 4.0]) + i)
        state.temperature = [1.0, 1.0, 0.5, 2.0][i]

    def step() -> torch.Tensor:
        return torch.softmax(state.logits / state.temperature, 0)

    return Case(prepare, step, owners={"state": state})


# %% tags=["try"]
print("eager:   ", runner_3().eager())
print("replayed:", runner_3().replayed())


# %% tags=["answer:diagnosis_3"]
def diagnosis_3() -> tuple[str, str | None]:
    """What is wrong with `runner_3`: the kind, and the name."""
    # ANSWER
    return "frozen-value", "state.temperature"


# %% [markdown]
"""
## Runner 4: long requests

From 8 tokens on, attention takes another way.
"""


# %%
def runner_4() -> Case:
    state = SimpleNamespace(scores=torch.zeros(4), longest=0)

    def prepare(i: int) -> None:
        state.scores.copy_(torch.tensor([4.0, 1.0, 2.0, 3.0]) * (1 + i))
        state.longest = 6 + i

    def step() -> torch.Tensor:
        if state.longest < 8:
            return state.scores * 2
        return state.scores + state.scores.sum()

    return Case(prepare, step, owners={"state": state})


# %% tags=["try"]
print("eager:   ", runner_4().eager())
print("replayed:", runner_4().replayed())


# %% tags=["answer:diagnosis_4"]
def diagnosis_4() -> tuple[str, str | None]:
    """What is wrong with `runner_4`: the kind, and the name."""
    # ANSWER
    return "frozen-branch", "state.longest"


# %% tags=["check:2"]
check("ex11", 2)

# %% [markdown]
"""
## Runner 5: history

Each step returns its key, twice its input, plus the sum of all keys that were written in steps before it.
"""


# %%
def runner_5(values=(1.0, 10.0, 100.0, 1000.0)) -> Case:
    state = SimpleNamespace(x=torch.zeros(1), key=None, keys={})
    total = torch.zeros(1)

    def prepare(i: int) -> None:
        if i > 1:  # what the step before wrote
            state.keys[i - 1] = state.key
            total.copy_(torch.cat(list(state.keys.values())).sum()[None])
        state.x.fill_(values[i])

    def step() -> torch.Tensor:
        state.key = state.x * 2
        return state.key + total

    owners = {"state": state, "total": total}
    return Case(prepare, step, owners=owners, rounds=len(values) - 1)


# %% tags=["try"]
print("eager:   ", runner_5().eager())
print("replayed:", runner_5().replayed())


# %% tags=["answer:diagnosis_5"]
def diagnosis_5() -> tuple[str, str | None]:
    """What is wrong with `runner_5`: the kind, and the name."""
    # ANSWER
    return "overwritten-output", "state.keys.1"


# %% [markdown]
"""
## Runner 6: quantized rows

Two requests in a graph of four rows. The rows are scaled to what eight bits can hold.
"""


# %%
def runner_6() -> Case:
    rows = torch.zeros(4, 2)

    def prepare(i: int) -> None:
        rows[:2].copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]) + i)

    def step() -> torch.Tensor:
        scale = rows.abs().max() / 127
        return torch.round(rows / scale) * scale

    def padding(i: int) -> torch.Tensor:
        return rows[2:]

    return Case(prepare, step, owners={"rows": rows}, padding=padding)


# %% tags=["try"]
print("eager:   ", runner_6().eager())
print("replayed:", runner_6().replayed())


# %% tags=["answer:diagnosis_6"]
def diagnosis_6() -> tuple[str, str | None]:
    """What is wrong with `runner_6`: the kind, and the name."""
    # ANSWER
    return "padding-leak", "rows"


# %% tags=["check:3"]
check("ex11", 3)

# %% [markdown]
"""
## Runner 7: a running mean

The mean begins with zeros, at the second run. It should go on from there.
"""


# %%
def runner_7() -> Case:
    x, state = torch.zeros(2), SimpleNamespace(runs=0, mean=None)

    def prepare(i: int) -> None:
        x.copy_(torch.tensor([1.0, 2.0]) + i)

    def step() -> torch.Tensor:
        state.runs += 1
        if state.runs == 1:
            return x * 1
        if state.mean is None:
            state.mean = torch.zeros(2)
        state.mean.mul_(0.5).add_(x)
        return state.mean * 1

    return Case(prepare, step, owners={"x": x, "state": state})


# %% tags=["try"]
print("eager:   ", runner_7().eager())
print("replayed:", runner_7().replayed())


# %% tags=["answer:diagnosis_7"]
def diagnosis_7() -> tuple[str, str | None]:
    """What is wrong with `runner_7`: the kind, and the name."""
    # ANSWER
    return "lazy-init-recorded", "state.mean"


# %% [markdown]
"""
## Runner 8: sizes

There are graphs for 1, 2 and 4 requests. `prepare` returns False where there is no graph for a step.
"""


# %%
def runner_8() -> Case:
    x, sizes = torch.zeros(8), (1, 2, 4)

    def prepare(i: int) -> bool:
        size = [4, 2, 6, 1][i]
        x.zero_()
        x[:size].fill_(1.0 + i)
        return size <= max(sizes)

    def step() -> torch.Tensor:
        return x * 2

    return Case(prepare, step, owners={"x": x})


# %% tags=["try"]
print("eager:   ", runner_8().eager())
print("replayed:", runner_8().replayed())


# %% tags=["answer:diagnosis_8"]
def diagnosis_8() -> tuple[str, str | None]:
    """What is wrong with `runner_8`: the kind, and the name."""
    # ANSWER
    return "silent-eager", None


# %% tags=["check:4"]
check("ex11", 4)

# %% [markdown]
"""
## Mend the table of pages

`mended_2(pages, most)` returns a `Case` that computes what `runner_2(pages)` computes eagerly, and whose replays do too.

- `pages`: for each step from 0 on a tuple of one or more pages, each from 1 to 4. `most`: the largest number of pages
  that a step has.
- The step gives a tensor without dimensions: the sum of the cache over the pages of this step. The cache is that of
  `runner_2`; the sum is made in `step`, from a table that `prepare` fills.
- The sanitizer finds nothing. A step may have fewer pages than the one before.
"""


# %% tags=["answer:mended_2"]
def mended_2(pages: tuple[tuple[int, ...], ...], most: int) -> Case:
    """`runner_2`, whose replays compute what it computes eagerly."""
    # ANSWER
    fixed = SimpleNamespace(table=torch.zeros(most, dtype=torch.int64))
    cache = torch.tensor([0.0, 1.0, 10.0, 100.0, 1000.0])

    def prepare(i: int) -> None:
        fixed.table.zero_()
        fixed.table[: len(pages[i])] = torch.tensor(pages[i])

    def step() -> torch.Tensor:
        return cache[fixed.table].sum()

    owners = {"fixed": fixed, "cache": cache}
    return Case(prepare, step, owners=owners, rounds=len(pages) - 1)


# %% tags=["try"]
with attempt():
    case = mended_2(((1,), (1, 2), (1, 2, 3), (4,)), 3)
    print("should be [11.0, 111.0, 1000.0]:", case.replayed())
    print(mended_2(((1,), (1, 2), (1, 2, 3), (4,)), 3).sanitize())

# %% tags=["check:5"]
check("ex11", 5)

# %% [markdown]
"""
## Mend the history

`mended_5(values)` returns a `Case` that computes what `runner_5(values)` computes eagerly, and whose replays do too.

- `values`: the input of each step from 0 on, floats. Step 0 is the warm-up, whose key is not kept.
- Step `i` gives a tensor of shape `[1]`: `2 * values[i]`, plus `2 * values[j]` for each `j` from 1 to `i - 1`.
- The sanitizer finds nothing. The key is still made in `step`, from an input that `prepare` fills.
"""


# %% tags=["answer:mended_5"]
def mended_5(values: tuple[float, ...]) -> Case:
    """`runner_5`, whose replays compute what it computes eagerly."""
    # ANSWER
    state = SimpleNamespace(x=torch.zeros(1), key=None, keys={})
    total = torch.zeros(1)

    def prepare(i: int) -> None:
        if i > 1:
            state.keys[i - 1] = state.key.clone()
            total.copy_(torch.cat(list(state.keys.values())).sum()[None])
        state.x.fill_(values[i])

    def step() -> torch.Tensor:
        state.key = state.x * 2
        return state.key + total

    owners = {"state": state, "total": total}
    return Case(prepare, step, owners=owners, rounds=len(values) - 1)


# %% tags=["try"]
with attempt():
    print("should be [[20.0], [220.0], [2220.0]]:")
    print(mended_5((1.0, 10.0, 100.0, 1000.0)).replayed())
    print(mended_5((1.0, 10.0, 100.0, 1000.0)).sanitize())

# %% tags=["check:6"]
check("ex11", 6)

# %% [markdown]
"""
No runner raised an error, and a GPU would have raised none. The [museum](../notebooks/11_the_museum.ipynb) has where
people met these. `onelaunch check` asks the same of a step of yours.
"""
