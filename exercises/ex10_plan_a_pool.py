# %% [markdown]
"""
# Exercise 10: Plan a pool

A graph's intermediates have fixed addresses. Two of them may share an address if one is dead before the other is born.
Here you decide who lies where, and find out why engines record their largest batch first.

*About 40 minutes. Medium. You need [chapter 5](../notebooks/05_memory.ipynb); no GPU, no torch.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex10_plan_a_pool.ipynb` judges all of
it, and `--hint` helps.
"""

# %%
from collections.abc import Mapping, Sequence

from onelaunch.grading import attempt, check

# %% [markdown]
"""
## Lifetimes

The kernels of a step are numbered from 0. A buffer is three whole numbers, `(nbytes, first, last)`: how large it is,
the kernel that writes it, and the last kernel that uses it. Here is a small step:
"""

# %%
Lifetime = tuple[int, int, int]

STEP: dict[str, Lifetime] = {
    "hidden": (1024, 0, 4),
    "query": (2048, 1, 2),
    "scores": (512, 2, 3),
    "context": (2048, 3, 4),
    "gate": (3072, 4, 5),
    "out": (1024, 5, 6),
}


def picture(
    lifetimes: Mapping[str, Lifetime],
    offsets: Mapping[str, int],
    unit: int = 512,
) -> str:
    """Kernels to the right, memory downwards. `#` is memory of two at once."""
    kernels = max(last for _, _, last in lifetimes.values()) + 1
    ends = [offsets[name] + lifetimes[name][0] for name in lifetimes]
    rows = [["."] * kernels for _ in range(-(-max(ends) // unit))]
    for name, (nbytes, first, last) in lifetimes.items():
        start = offsets[name] // unit
        for row in rows[start : -(-(offsets[name] + nbytes) // unit)]:
            for kernel in range(first, last + 1):
                row[kernel] = name[0] if row[kernel] == "." else "#"
    return "\n".join(
        f"{at * unit:6} {' '.join(row)}" for at, row in enumerate(rows)
    )


# %% [markdown]
"""
`alive_together(a, b)` says whether there is a kernel at which both exist.

- `a`, `b`: two lifetimes.
- A buffer exists at its `first` kernel, at its `last`, and at all between. A kernel reads its inputs *while* it writes
  its output, so `query`, last used by kernel 2, and `scores`, written by kernel 2, exist together.
- Returns a `bool`.
"""


# %% tags=["answer:alive_together"]
def alive_together(a: Lifetime, b: Lifetime) -> bool:
    """Whether both exist at some kernel."""
    # ANSWER
    return a[1] <= b[2] and b[1] <= a[2]


# %% tags=["check:1"]
check("ex10", 1)

# %% [markdown]
"""
## What no plan can beat

`peak_live(lifetimes)` is the most memory that is in use at once.

- `lifetimes`: a dict, name -> lifetime, in any order; may be empty.
- Returns the largest sum of `nbytes` over the buffers that exist at one kernel, as an `int`; 0 if there are none.
"""


# %% tags=["answer:peak_live"]
def peak_live(lifetimes: Mapping[str, Lifetime]) -> int:
    """Bytes in use at the fullest moment."""
    # ANSWER
    kernels = {first for _, first, _ in lifetimes.values()}
    return max(
        (
            sum(
                nbytes
                for nbytes, first, last in lifetimes.values()
                if first <= kernel <= last
            )
            for kernel in kernels
        ),
        default=0,
    )


# %% tags=["try"]
with attempt():
    print(peak_live(STEP), "of", sum(nbytes for nbytes, _, _ in STEP.values()))

# %% tags=["check:2"]
check("ex10", 2)

# %% [markdown]
"""
## The plan

`plan(lifetimes, alignment)` gives every buffer its place.

- Place the buffers in the order in which they are **born** (by `first`; those born at the same kernel in the order of
  the dict).
- Each goes to the **lowest** offset that is a multiple of `alignment` and at which it shares no byte with a buffer that
  is placed already and exists at the same time. A gap between two others is used if it is large enough.
- Returns a dict, name -> offset in bytes, for every buffer. `lifetimes` must stay as it is.
- `nbytes` is at least 1 and need not be a multiple of `alignment`.
"""


# %% tags=["answer:plan"]
def plan(
    lifetimes: Mapping[str, Lifetime], alignment: int = 512
) -> dict[str, int]:
    """An offset for each buffer, so that none overwrites another that is alive."""
    # ANSWER
    offsets: dict[str, int] = {}
    for name in sorted(lifetimes, key=lambda name: lifetimes[name][1]):
        nbytes = lifetimes[name][0]
        taken = sorted(
            (offset, offset + lifetimes[other][0])
            for other, offset in offsets.items()
            if alive_together(lifetimes[name], lifetimes[other])
        )
        lowest = 0
        for start, end in taken:
            if lowest + nbytes <= start:
                break
            lowest = max(lowest, -(-end // alignment) * alignment)
        offsets[name] = lowest
    return offsets


# %% [markdown]
"""
Look at yours. Each letter is a buffer, `#` would be memory that two of them use at once:
"""

# %% tags=["try"]
with attempt():
    print(picture(STEP, plan(STEP)))

# %% tags=["check:3"]
check("ex10", 3)

# %% tags=["check:4"]
check("ex10", 4)

# %% tags=["check:5"]
check("ex10", 5)

# %% [markdown]
"""
## Many graphs, one pool

Graphs of several batch sizes share a pool. CUDA memory comes in **segments**: once reserved, a segment is never split
here, never joined with another, and never given back. A graph needs some blocks, all at the same time; when it has been
recorded they are free for the next graph.

`reserved(graphs)` says what the pool has reserved in the end.

- `graphs`: a list of graphs in the order in which they are recorded; a graph is a list of block sizes in bytes.
- Each block, in the order of its list, takes the **smallest** segment that is large enough and not taken by another
  block of the same graph. If there is none, a new segment of the block's size is reserved.
- Returns the sum of all segments, as an `int`. `graphs` must stay as it is.
"""


# %% tags=["answer:reserved"]
def reserved(graphs: Sequence[Sequence[int]]) -> int:
    """Bytes that the pool holds after all graphs are recorded, in this order."""
    # ANSWER
    segments: list[int] = []
    for blocks in graphs:
        free = sorted(segments)
        for block in blocks:
            fits = next((size for size in free if size >= block), None)
            if fits is None:
                segments.append(block)
            else:
                free.remove(fits)
    return sum(segments)


# %% [markdown]
"""
Four batch sizes, two blocks each. The same graphs in two orders:
"""

# %% tags=["try"]
with attempt():
    graphs = [[1024 * size, 256 * size] for size in (8, 4, 2, 1)]
    print("largest first: ", reserved(graphs))
    print("smallest first:", reserved(graphs[::-1]))

# %% tags=["check:6"]
check("ex10", 6)

# %% [markdown]
"""
That is the whole reason for "largest first". PyTorch's allocator does split and join blocks within a segment; what it
shares with yours is that a segment that is too small helps nobody. `onelaunch.tape.pool` is the pool of this book's
emulator, and [chapter 5](../notebooks/05_memory.ipynb) measures it.
"""
