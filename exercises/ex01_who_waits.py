# %% [markdown]
"""
# Exercise 1: Who waits

The host launches kernels, the device runs them, and one of the two waits for the other. Here you work out the time of a
step from what a launch and each kernel cost, say who waits, and find out when a graph is worth its recording.

*About 30 minutes. Easy. You need [chapter 1](../notebooks/01_what_a_launch_costs.ipynb); no GPU, no torch.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex01_who_waits.ipynb` judges all of it,
and `--hint` helps.
"""

# %%
from collections.abc import Sequence

from onelaunch.grading import attempt, check

# %% [markdown]
"""
## When each kernel starts

All times are whole microseconds, and the step begins at 0. The host launches one kernel after the other without a pause;
each launch takes `launch_us`. A kernel starts as soon as

- its own launch is **over**, and
- the kernel before it has ended.

`starts(kernels, launch_us)` gives the time at which each kernel starts.

- `kernels`: a list with how long each kernel runs, in order; may be empty. `launch_us`: at least 1.
- Returns a list of numbers, one for each kernel.
"""


# %% tags=["answer:starts"]
def starts(kernels: Sequence[int], launch_us: int) -> list[int]:
    """When each kernel starts, in microseconds since the step began."""
    # ANSWER
    found, free = [], 0
    for at, kernel in enumerate(kernels):
        found.append(max((at + 1) * launch_us, free))
        free = found[-1] + kernel
    return found


# %%
def picture(kernels: Sequence[int], launch_us: int, at: Sequence[int]) -> str:
    """Host and device, a character a microsecond, from the starts `at`."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    at = [int(start) for start in at]
    end = max(start + us for start, us in zip(at, kernels, strict=True))
    host = "".join(letter * launch_us for letter in letters[: len(kernels)])
    device = ["."] * end
    for letter, start, us in zip(letters, at, kernels, strict=False):
        for time in range(start, start + us):
            device[time] = letter if device[time] == "." else "#"
    return f"host   {host.ljust(end, '.')}\ndevice {''.join(device)}"


# %% [markdown]
"""
Look at yours. A dot is someone who waits, and `#` would be two kernels at once:
"""

# %% tags=["try"]
with attempt():
    for kernels in ([2, 2, 2, 2], [9, 9, 9, 9], [2, 2, 16, 2, 2]):
        print(picture(kernels, 5, starts(kernels, 5)), "\n")

# %% tags=["check:1"]
check("ex01", 1)

# %% tags=["check:2"]
check("ex01", 2)

# %% [markdown]
"""
## Who waits, and how long

The step is over when its last kernel has ended; until then the host, too, waits for it.

`waiting(kernels, launch_us)` gives two numbers, `(host_us, device_us)`: for how much of the step the host launches
nothing, and for how much of it the device runs nothing. Before its first kernel the device waits as well. Without
kernels there is no step, and both are 0.
"""


# %% tags=["answer:waiting"]
def waiting(kernels: Sequence[int], launch_us: int) -> tuple[int, int]:
    """How long the host and the device stand still in a step."""
    # ANSWER
    if not kernels:
        return 0, 0
    step = starts(kernels, launch_us)[-1] + kernels[-1]
    return step - len(kernels) * launch_us, step - sum(kernels)


# %% tags=["check:3"]
check("ex01", 3)

# %% [markdown]
"""
`launch_bound(kernels, launch_us)` says whether the step is launch-bound: whether the device waits **longer** than the
host. Returns a `bool`; `False` where both wait equally long.
"""


# %% tags=["answer:launch_bound"]
def launch_bound(kernels: Sequence[int], launch_us: int) -> bool:
    """Whether the device waits longer for the host than the host for it."""
    # ANSWER
    host_us, device_us = waiting(kernels, launch_us)
    return device_us > host_us


# %% tags=["try"]
with attempt():
    for count, us in ((350, 2), (100, 12)):
        host_us, device_us = waiting([us] * count, 5)
        bound = launch_bound([us] * count, 5)
        print(f"{count} kernels of {us} µs: host waits {host_us} µs,", end=" ")
        print(f"device {device_us} µs; launch-bound: {bound}")

# %% tags=["check:4"]
check("ex01", 4)

# %% [markdown]
"""
## The same as a graph

The host launches the whole graph at once, which takes `graph_us`. Then the kernels run, and **between** two of them the
device needs `gap_us`.

`graph_time(kernels, graph_us, gap_us)` gives the time of such a step, from 0 to the end of the last kernel. A graph has
at least one kernel.
"""


# %% tags=["answer:graph_time"]
def graph_time(kernels: Sequence[int], graph_us: int, gap_us: int) -> int:
    """Microseconds of a step that is launched as one graph."""
    # ANSWER
    return graph_us + sum(kernels) + (len(kernels) - 1) * gap_us


# %% tags=["check:5"]
check("ex01", 5)

# %% [markdown]
"""
## When it has paid off

A graph has to be recorded before the first step, and that takes `capture_us`, at least 1.

`pays_off(kernels, launch_us, graph_us, gap_us, capture_us)` gives the smallest number of steps after which recording
and replaying them took **no longer** than running them eagerly.

- `kernels`: at least one.
- Returns an `int`; `None` if a graph's step is no faster, so that it never pays off.
"""


# %% tags=["answer:pays_off"]
def pays_off(
    kernels: Sequence[int],
    launch_us: int,
    graph_us: int,
    gap_us: int,
    capture_us: int,
) -> int | None:
    """After how many steps a recording is worth its time."""
    # ANSWER
    eager = starts(kernels, launch_us)[-1] + kernels[-1]
    saved = eager - graph_time(kernels, graph_us, gap_us)
    return -(-capture_us // saved) if saved > 0 else None


# %% tags=["try"]
with attempt():
    for us in (2, 3, 4):
        steps = pays_off([us] * 350, 5, 10, 1, capture_us=300_000)
        print(f"350 kernels of {us} µs: {steps}")

# %% tags=["check:6"]
check("ex01", 6)

# %% [markdown]
"""
`onelaunch.timeline.simulate` does this with kernels of a real tape, and with what is left out here: a queue that holds so
many launches, gaps between kernels of a stream, and the host's work around a step
([chapter 13](../notebooks/13_gpus_you_dont_have.ipynb)).
"""
