# %% [markdown]
"""
# Exercise 8: A toy tape

A graph on a CPU can be had in two ways. The simple one keeps the step and runs its Python again. The other one is a
tape: it keeps the kernels and forgets the Python, as a GPU does. Here you write both, for a device of forty lines, and
then what every engine needs: a replay that refuses stale inputs.

*About 45 minutes. Medium. You need chapters [3](../notebooks/03_first_capture.ipynb) and
[10](../notebooks/10_a_graph_on_a_cpu.ipynb); no GPU, no torch.*

Write your answers into the cells that say so. Only those are graded, so what they need (imports, helpers) must be in
them. Run a check's cell to have an answer judged. From a shell, `onelaunch grade ex08_a_toy_tape.ipynb` judges all of
it, and `--hint` helps.
"""

# %%
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from onelaunch.grading import attempt, check

# %% [markdown]
"""
## The simple one

`Rerun(step, batch)` is a graph that is none. `step(batch)` is a decode step; it reads lists in `batch` and writes its
results into others.

- Making one runs nothing.
- `replay()` calls `step` once, with the **very** batch that it was made with. Whoever wants other results writes other
  numbers into that batch first. It returns nothing.
"""


# %% tags=["answer:Rerun"]
class Rerun:
    """A graph that is none: each replay runs the step again."""

    def __init__(self, step: Callable[[Any], None], batch: Any) -> None:
        # ANSWER
        self.step, self.batch = step, batch

    def replay(self) -> None:
        """Run the step on the batch of the capture."""
        # ANSWER
        self.step(self.batch)


# %% tags=["check:1"]
check("ex08", 1)

# %% [markdown]
"""
## A device

This one computes with lists. Its kernels read `inputs`, which are buffers, and `numbers`, which come from the host, and
write `out`. While it has a `recorder`, it tells it of each launch and **runs nothing**: so does a GPU during a capture.
"""


# %%
class Buffer:
    """Memory on the device. Each has a name of its own."""

    def __init__(self, name: str, values: Sequence[float]) -> None:
        self.name = name
        self.values = list(values)  # always this list: it is the memory


def add(inputs, numbers):
    memory = [one.values for one in inputs]
    return [sum(each) for each in zip(*memory, strict=True)]


def scale(inputs, numbers):
    return [numbers[0] * value for value in inputs[0].values]


KERNELS = {"add": add, "scale": scale}


class Device:
    """Runs kernels, or tells its recorder which ones it would have run."""

    def __init__(self) -> None:
        self.recorder: Callable[..., None] | None = None

    def launch(self, kernel, out, inputs, numbers=()) -> None:
        if self.recorder is not None:
            self.recorder(kernel, out, inputs, numbers)
        else:
            out.values[:] = KERNELS[kernel](inputs, numbers)

    def read(self, buffer) -> list[float]:
        """What a buffer holds. The host would have to wait for that."""
        if self.recorder is not None:
            raise RuntimeError(f"reading {buffer.name!r} during a recording")
        return list(buffer.values)


# %%
device = Device()
x = Buffer("x", [1, 2, 3])
hidden, out = Buffer("hidden", [0, 0, 0]), Buffer("out", [0, 0, 0])
settings = [10]


def step() -> None:
    """out = 10 * x + x"""
    device.launch("scale", hidden, [x], settings)
    device.launch("add", out, [hidden, x])


step()
print("out = 10 * x + x =", device.read(out))

# %% [markdown]
"""
## The tape

`Tape(device)` records a step and replays it.

- `record(step)` calls `step()` once, with `device.recorder` set to a function of yours. Afterwards `device.recorder`
  is `None` again, **also if the step raised**; the error goes on to the caller. A second `record` replaces the first.
- `kernels` is then a list of tuples `(kernel, out, inputs, numbers)`, in the order of the launches. `out` and those in
  `inputs` are the buffers themselves.
- What the host handed to a launch is copied at that moment. If it changes its lists `inputs` or `numbers` later, the
  tape does not notice. What lies in the buffers is read at the replay.
- `replay()` launches the recorded kernels, in order, with `device.launch`. It never calls `step`. It may be called any
  number of times.
"""


# %% tags=["answer:Tape"]
class Tape:
    """The kernels of a step, without its Python."""

    def __init__(self, device: Any) -> None:
        # ANSWER
        self.device = device
        self.kernels: list[tuple[str, Any, tuple, tuple]] = []

    def record(self, step: Callable[[], None]) -> None:
        """Note what `step` launches."""
        # ANSWER
        kernels = []

        def note(kernel, out, inputs, numbers=()):
            kernels.append((kernel, out, tuple(inputs), tuple(numbers)))

        self.device.recorder = note
        try:
            step()
        finally:
            self.device.recorder = None
        self.kernels = kernels

    def replay(self) -> None:
        """Launch the same kernels again."""
        # ANSWER
        for kernel, out, inputs, numbers in self.kernels:
            self.device.launch(kernel, out, inputs, numbers)


# %% [markdown]
"""
Both graphs, side by side. The input changes, then a number of the host. Which of the two does what a GPU does?
"""

# %% tags=["try"]
with attempt():
    rerun, tape = Rerun(lambda batch: step(), None), Tape(device)
    tape.record(step)
    for values, factor in (([1, 2, 3], 10), ([4, 5, 6], 10), ([4, 5, 6], 99)):
        x.values[:], settings[0] = values, factor
        print(f"x = {values}, settings = {settings}")
        for name, graph in (("rerun", rerun), ("tape", tape)):
            graph.replay()
            print(f"    {name}: out = {device.read(out)}")
    settings[0] = 10

# %% tags=["check:2"]
check("ex08", 2)

# %% tags=["check:3"]
check("ex08", 3)

# %% tags=["check:4"]
check("ex08", 4)

# %% [markdown]
"""
## What a replay needs

`inputs_of(kernels)` says which buffers have to hold something before a replay.

- `kernels`: a list as `Tape` has it.
- Returns the **buffers** that the graph reads before any of its own kernels has written them; each once, in the order
  in which they are first read. A kernel reads its inputs before it writes: one that adds to `total` in place reads
  `total`.
- Two buffers may hold the same numbers, and are two all the same.
"""


# %% tags=["answer:inputs_of"]
def inputs_of(kernels: Sequence[tuple]) -> list[Any]:
    """The buffers that come from outside."""
    # ANSWER
    written: set[str] = set()
    found: dict[str, Any] = {}
    for _, out, reads, _ in kernels:
        for buffer in reads:
            if buffer.name not in written:
                found.setdefault(buffer.name, buffer)
        written.add(out.name)
    return list(found.values())


# %% tags=["try"]
with attempt():
    tape = Tape(device)
    tape.record(step)
    print(
        "needed before a replay:", [one.name for one in inputs_of(tape.kernels)]
    )

# %% tags=["check:5"]
check("ex08", 5)

# %% [markdown]
"""
## Never stale

A replay whose input nobody refreshed raises nothing and gives the results of the last batch. `replay_fresh(tape, new, weights)`
does not let that happen.

- `new`: a dict, name of an input -> its new values. `weights`: the names of inputs that stay as they are.
- Copies the new values into the buffers' memory (the list `values` stays the same list), then replays once. Returns
  nothing.
- Raises `ValueError`, and then has **changed no buffer and launched nothing**, if
  - an input is neither in `new` nor in `weights`; the message has its name,
  - `new` has a name that is no input of the tape,
  - the new values are not as many as the buffer holds.
"""


# %% tags=["answer:replay_fresh"]
def replay_fresh(
    tape: Any, new: Mapping[str, Sequence[float]], weights: Collection[str] = ()
) -> None:
    """Bring the inputs, then replay; refuse to replay with a stale one."""
    # ANSWER
    needed = {buffer.name: buffer for buffer in inputs_of(tape.kernels)}
    stale = [n for n in needed if n not in new and n not in weights]
    if stale:
        raise ValueError(f"nobody brought {', '.join(stale)}")
    for name, values in new.items():
        if name not in needed:
            raise ValueError(f"{name} is no input of this tape")
        if len(values) != len(needed[name].values):
            raise ValueError(f"{len(values)} values for {name}")
    for name, values in new.items():
        needed[name].values[:] = values
    tape.replay()


# %% tags=["check:6"]
check("ex08", 6)

# %% [markdown]
"""
The engine of this book has both: `graph="rerun"` and `graph="tape"`, in `onelaunch.engine.capture`. Its tape listens to
PyTorch's dispatcher instead of a `recorder`, and its memory is a pool ([exercise 10](ex10_plan_a_pool.ipynb)).
"""
