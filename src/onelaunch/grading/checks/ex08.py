"""Exercise 8, a toy tape: rerun a step, record its kernels, replay them, and refuse stale inputs. Plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, show

exercise = Exercise("ex08", "A toy tape")

Line = tuple[str, str, list[str], list[int]]  # kernel, out, inputs, numbers; buffers by name
FIRST: list[Line] = [("scale", "hidden", ["x"], [10]), ("add", "out", ["hidden", "x"], [])]


class Buffer:
    """As the notebook's, apart from it: nothing that a learner changes there reaches the checks."""

    def __init__(self, name: str, values: Sequence[int]) -> None:
        self.name, self.values = name, list(values)

    def __repr__(self) -> str:
        return self.name


class Device:
    """As the notebook's; ``launched`` has the kernels that it ran."""

    def __init__(self) -> None:
        self.recorder: Callable[..., None] | None = None
        self.launched: list[str] = []

    def launch(self, kernel: str, out: Buffer, inputs: Sequence[Buffer], numbers: Sequence[int] = ()) -> None:
        """Run a kernel, or tell the recorder."""
        if self.recorder is not None:
            self.recorder(kernel, out, inputs, numbers)
            return
        self.launched.append(kernel)
        out.values[:] = computed(kernel, [one.values for one in inputs], numbers)

    def read(self, buffer: Buffer) -> list[int]:
        """What a buffer holds; refused during a recording."""
        if self.recorder is not None:
            raise RuntimeError(f"reading {buffer.name!r} during a recording")
        return list(buffer.values)


def computed(kernel: str, inputs: Sequence[Sequence[int]], numbers: Sequence[int]) -> list[int]:
    """What a kernel writes."""
    if kernel == "add":
        return [sum(each) for each in zip(*inputs, strict=True)]
    return [numbers[0] * value for value in inputs[0]]


def after(program: Sequence[Line], memory: dict[str, list[int]]) -> dict[str, list[int]]:
    """The right answer: memory after these kernels, found without a device."""
    found = {name: list(values) for name, values in memory.items()}
    for kernel, out, inputs, numbers in program:
        found[out] = computed(kernel, [found[name] for name in inputs], numbers)
    return found


def needed(program: Sequence[Line]) -> list[str]:
    """The right answer: what is read before the graph has written it, found from the front for each."""
    reads = [name for _, _, inputs, _ in program for name in inputs]
    found = []
    for name in dict.fromkeys(reads):
        first = next(at for at, line in enumerate(program) if name in line[2])
        if all(out != name for _, out, _, _ in program[:first]):
            found.append(name)
    return found


def some_program(trial: Trial, buffers: str = "abcdef") -> list[Line]:
    """Four to seven kernels, some of them in place."""
    program: list[Line] = []
    for _ in range(trial.rng.randint(4, 7)):
        out = trial.rng.choice(buffers)
        if trial.rng.random() < 0.5:
            program.append(("scale", out, [trial.rng.choice(buffers)], [trial.rng.choice((-2, -1, 2, 3))]))
        else:
            program.append(("add", out, trial.rng.sample(buffers, trial.rng.randint(2, 3)), []))
    return program


def some_memory(trial: Trial, program: Sequence[Line]) -> dict[str, list[int]]:
    """Three numbers for each buffer of a program."""
    names = dict.fromkeys(name for _, out, inputs, _ in program for name in (*inputs, out))
    return {name: [trial.rng.randint(1, 99) for _ in range(3)] for name in names}


def text(program: Sequence[Line]) -> str:
    """A program as one would write it."""
    lines = [f"{k}({', '.join([*inputs, *map(str, numbers)])}) -> {out}" for k, out, inputs, numbers in program]
    return "; ".join(lines) or "no kernels"


class Bench:
    """A device with buffers, and a step that launches a program on them."""

    def __init__(self, program: Sequence[Line], memory: dict[str, list[int]], device: Device | None = None) -> None:
        self.program, self.device, self.calls = program, device or Device(), 0
        self.buffers = {name: Buffer(name, values) for name, values in memory.items()}
        self.lists = {name: buffer.values for name, buffer in self.buffers.items()}

    def step(self) -> None:
        """Launch it all, from lists that are used again at once."""
        self.calls += 1
        for kernel, out, names, numbers in self.program:
            self.device.launch(kernel, self.buffers[out], [self.buffers[name] for name in names], list(numbers))

    def fill(self, memory: dict[str, list[int]]) -> None:
        """Write other numbers into the same memory."""
        for name, values in memory.items():
            self.lists[name][:] = values

    @property
    def memory(self) -> dict[str, list[int]]:
        """What the buffers hold. The memory is the list that a buffer began with."""
        return {name: list(values) for name, values in self.lists.items()}

    @property
    def kernels(self) -> list[tuple[str, Buffer, list[Buffer], list[int]]]:
        """The program as a tape has it."""
        return [
            (kernel, self.buffers[out], [self.buffers[name] for name in names], list(numbers))
            for kernel, out, names, numbers in self.program
        ]


def recorded(trial: Trial, bench: Bench, call: str) -> Any:
    """A tape of the bench's step, made by the learner's class."""
    with trial.running(call, "a recording"):
        tape = trial.answer("Tape")(bench.device)
        tape.record(bench.step)
    return tape


def lines_of(trial: Trial, tape: Any, call: str) -> list[Any]:
    """What a tape says that its kernels are, with each buffer in place of its name."""
    with trial.running(f"{call}: tape.kernels", "a list of (kernel, out, inputs, numbers)"):
        return [(kernel, out, list(inputs), list(numbers)) for kernel, out, inputs, numbers in tape.kernels]


@exercise.check(
    "a rerun runs the step on the very batch of the capture, at each replay",
    hints=(
        "What does the step see at the second replay, if somebody wrote into the batch in between?",
        "Keep step and batch when it is made; a copy of the batch would never see new numbers.",
        "self.step, self.batch = step, batch, and replay is self.step(self.batch).",
    ),
)
def rerun(trial: Trial) -> None:
    """Two graphs of one step; the batches are refreshed in place."""
    seen: list[dict[str, list[int]]] = []

    def step(batch: dict[str, list[int]]) -> None:
        seen.append(batch)
        batch["out"][:] = [7 * token for token in batch["tokens"]]

    batches = [{"tokens": [1, 2], "out": [0, 0]}, {"tokens": [3], "out": [0]}]
    call = "Rerun(step, batch)"
    graphs = []
    for batch in batches:
        with trial.running(call, "a graph"):
            graphs.append(trial.answer("Rerun")(step, batch))
    if seen:
        raise Wrong(call, "no call of step yet", f"{len(seen)} calls", "Only a replay runs the step.")
    for at in (0, 1, 0, 0, 1):
        batch = batches[at]
        batch["tokens"][:] = [trial.rng.randint(1, 99) for _ in batch["tokens"]]
        right, before = [7 * token for token in batch["tokens"]], len(seen)
        asked = f"Rerun(step, batch).replay(), after batch['tokens'][:] = {batch['tokens']}"
        with trial.running(asked):
            graphs[at].replay()
        if len(seen) != before + 1:
            raise Wrong(asked, "one call of step", f"{len(seen) - before} calls")
        trial.equal(batch["out"], right, call=f"{asked}; batch['out']")
        if seen[-1] is not batch:
            raise Wrong(asked, "step called with the batch itself", "a copy of it", "Keep the batch, not a copy.")


@exercise.check(
    "a recording notes each launch in order, runs none, and is over even if the step fails",
    hints=(
        "The device tells its recorder of each launch. Who sets device.recorder, and who takes it away?",
        "A function that appends a tuple to a list is a recorder. Set it, call the step, set None again.",
        "try: step() and finally: self.device.recorder = None. Begin each recording with an empty list.",
    ),
)
def recording(trial: Trial) -> None:
    """What a tape notes; a second recording; a step that reads, which the device refuses."""
    for program in (FIRST, [], *(some_program(trial) for _ in range(6))):
        memory = some_memory(trial, program)
        bench = Bench(program, memory)
        call = f"Tape(device).record(step), where step is {text(program)}"
        tape = recorded(trial, bench, call)
        if bench.calls != 1:
            raise Wrong(call, "one call of step", f"{bench.calls} calls")
        if bench.device.recorder is not None:
            raise Wrong(call, "device.recorder None afterwards", "a recorder that is still there")
        if bench.device.launched or bench.memory != memory:
            raise Wrong(call, "no kernel run", f"{len(bench.device.launched)} kernels run", "A capture runs nothing.")
        trial.equal(lines_of(trial, tape, call), bench.kernels, call=f"{call}; tape.kernels")
        second = some_program(trial)
        other = Bench(second, some_memory(trial, second), bench.device)
        with trial.running(f"{call}, then of another step"):
            tape.record(other.step)
        again = f"{call}, then record(step) of {text(other.program)}; tape.kernels"
        trial.equal(
            lines_of(trial, tape, call), other.kernels, call=again, hint="A second recording replaces the first."
        )
    bench = Bench(FIRST, some_memory(trial, FIRST))

    def reads() -> None:
        bench.step()
        bench.device.read(bench.buffers["out"])

    refused = "Tape(device).record(step), where step launches, then calls device.read"
    with trial.running(refused, "the device's RuntimeError"):
        try:
            trial.answer("Tape")(bench.device).record(reads)
        except RuntimeError as error:
            if isinstance(error, NotImplementedError):
                raise
        else:
            raise Wrong(refused, "the device's RuntimeError", "no error", "Let the error go on to the caller.")
    if bench.device.recorder is not None:
        hint = "The step raised. What comes after it in record is not run, unless it stands in a finally."
        raise Wrong(refused, "device.recorder None afterwards", "a recorder that is still there", hint)


@exercise.check(
    "a replay launches the recorded kernels on the same memory, and calls no step",
    hints=(
        "All that a replay needs is in self.kernels.",
        "Launch each tuple of the list again, on the device, in order. The buffers are the recorded ones, not copies.",
        "for kernel, out, inputs, numbers in self.kernels: self.device.launch(kernel, out, inputs, numbers).",
    ),
)
def replaying(trial: Trial) -> None:
    """Several replays, with other numbers in the buffers each time."""
    for program in (FIRST, *(some_program(trial) for _ in range(10))):
        bench = Bench(program, some_memory(trial, program))
        call = f"tape.replay() of {text(program)}"
        tape = recorded(trial, bench, call)
        for _ in range(3):
            memory = some_memory(trial, program)
            right, calls, launched = after(program, memory), bench.calls, len(bench.device.launched)
            bench.fill(memory)
            with trial.running(call):
                tape.replay()
            if bench.calls != calls:
                raise Wrong(call, "no call of step", "a call of step", "A graph has no Python in it.")
            fresh = "The buffers hold other numbers than at the recording."
            trial.equal(bench.memory, right, call=f"{call}, with {memory}; the buffers", hint=fresh)
            ran = bench.device.launched[launched:]
            trial.equal(ran, [line[0] for line in program], call=f"{call}; what the device ran")


@exercise.check(
    "what the host handed over is frozen, whatever it does with its lists afterwards",
    hints=(
        "The step may use one list for all its launches, and change it in between.",
        "Your tuple holds the host's list itself. Copy what is in it at the moment of the launch.",
        "tuple(inputs) and tuple(numbers) are new and hold the same buffers; a deepcopy would copy the memory too.",
    ),
)
def frozen(trial: Trial) -> None:
    """Lists that change during the recording and after it, and a branch that is taken once."""
    for _ in range(5):
        first, second, third = trial.rng.sample(range(2, 50), 3)
        memory = {"x": [1, 2, 3], "y": [4, 5, 6], "a": [0] * 3, "b": [0] * 3, "c": [0] * 3, "d": [0] * 3}
        bench = Bench([], memory)
        device, at = bench.device, bench.buffers
        numbers, given, flag = [first], [at["x"]], [True]

        def step(
            device: Any = device, at: Any = at, numbers: Any = numbers, given: Any = given, flag: Any = flag,
            second: int = second,
        ) -> None:  # fmt: skip
            device.launch("scale", at["a"], [at["x"]], numbers)
            numbers[0] = second
            device.launch("scale", at["b"], [at["y"] if flag[0] else at["x"]], numbers)
            device.launch("add", at["c"], given)
            given.append(at["y"])
            device.launch("add", at["d"], given)

        call = "tape.replay(), where step changes its lists inputs and numbers between its launches"
        with trial.running(call):
            tape = trial.answer("Tape")(device)
            tape.record(step)
        numbers[0], flag[0] = third, False
        given.clear()
        x, y = ([trial.rng.randint(1, 99) for _ in range(3)] for _ in range(2))
        bench.fill({"x": x, "y": y})
        right = {
            "x": x,
            "y": y,
            "a": [first * value for value in x],
            "b": [second * value for value in y],
            "c": x,
            "d": [one + other for one, other in zip(x, y, strict=True)],
        }
        with trial.running(call):
            tape.replay()
        trial.equal(bench.memory, right, call=f"{call} (scale {first}, then {second}); the buffers")


@exercise.check(
    "the inputs are what the graph reads before it has written it",
    hints=(
        "hidden is read in the step above, but no one has to bring it. Why?",
        "Walk over the kernels once and note what has been written. What is read and not noted comes from outside.",
        "For each kernel look at its inputs first and only then note its out: it reads before it writes.",
    ),
)
def from_outside(trial: Trial) -> None:
    """Fixed programs for each rule, then random ones; all buffers hold the same numbers."""
    own = "What a kernel of the graph wrote before need not be brought."
    place = "A kernel that works in place reads its buffer before it writes it."
    cases: list[tuple[list[Line], str]] = [
        (FIRST, own),
        ([("add", "total", ["total", "x"], [])], place),
        ([("scale", "out", ["cache"], [2]), ("scale", "cache", ["x"], [3])], "Written later, and read before that."),
        ([("add", "a", ["z", "x"], []), ("add", "b", ["x", "z"], [])], "Each once, in the order of the first read."),
        ([("scale", "a", ["x"], [2]), ("scale", "x", ["a"], [2]), ("scale", "b", ["x"], [2])], "Each once."),
        ([], "A graph may be empty."),
        *((some_program(trial), "") for _ in range(30)),
    ]
    for program, hint in cases:
        bench = Bench(program, {name: [0, 0, 0] for name in some_memory(trial, program)})
        right = needed(program)
        call = f"inputs_of(kernels), where kernels are {text(program)}"
        with trial.running(call, show(right)):
            got = trial.answer("inputs_of")(bench.kernels)
        trial.equal(got, [bench.buffers[name] for name in right], call=call, hint=hint)


def refused(
    trial: Trial, bench: Bench, tape: Any, call: str, new: dict[str, list[int]], kept: list[str], hint: str
) -> str:
    """The message of the ValueError that ``replay_fresh`` has to raise, and nothing else may have happened."""
    memory, launched = bench.memory, len(bench.device.launched)
    message = None
    with trial.running(call, "ValueError raised"):
        try:
            trial.answer("replay_fresh")(tape, new, kept)
        except ValueError as error:
            message = str(error)
    if message is None:
        raise Wrong(call, "ValueError raised", "no error", hint)
    if len(bench.device.launched) != launched:
        raise Wrong(call, "nothing launched", "kernels launched, and then ValueError", "Look first, then replay.")
    if bench.memory != memory:
        raise Wrong(call, "no buffer changed", show(bench.memory), "Look at everything before you copy anything.")
    return message


@exercise.check(
    "a replay gets all its inputs, and one with a stale input is refused",
    hints=(
        "inputs_of(tape.kernels) says what has to be there. What is neither new nor a weight is stale.",
        "Do it in two passes: first look at everything and raise, then copy everything and replay.",
        "Copy with buffer.values[:] = values, which keeps the list; buffer.values = values would put in another.",
    ),
)
def never_stale(trial: Trial) -> None:
    """What is brought arrives in the same memory; each refusal leaves everything as it was."""
    programs = [FIRST, *(some_program(trial) for _ in range(8))]
    for program in programs:
        outside = needed(program)
        kept = trial.rng.sample(outside, trial.rng.randint(0, len(outside) - 1)) if len(outside) > 1 else []
        brought = [name for name in outside if name not in kept]
        memory = some_memory(trial, program)
        bench = Bench(program, memory)
        tape = recorded(trial, bench, f"Tape(device).record(step), where step is {text(program)}")
        what = f"a tape of {text(program)}"
        for _ in range(2):
            new = {name: [trial.rng.randint(100, 199) for _ in range(3)] for name in brought}
            now = bench.memory | new
            right, before = after(program, now), len(bench.device.launched)
            call = f"replay_fresh({what}, {new}, weights={kept})"
            with trial.running(call, show(right)):
                trial.answer("replay_fresh")(tape, dict(new), list(kept))
            if any(buffer.values is not bench.lists[name] for name, buffer in bench.buffers.items()):
                raise Wrong(call, "each buffer's list the same as before", "another list", "Write into the list.")
            trial.equal(bench.memory, right, call=f"{call}; the buffers")
            if len(bench.device.launched) - before != len(program):
                raise Wrong(call, "one replay", f"{len(bench.device.launched) - before} kernels")
        if not brought:
            continue
        gone = trial.rng.choice(brought)
        less = {name: values for name, values in new.items() if name != gone}
        call = f"replay_fresh({what}, {less}, weights={kept})"
        message = refused(trial, bench, tape, call, less, kept, f"{gone} still holds the numbers of the last batch.")
        if gone not in message:
            raise Wrong(call, f"a message that names {gone}", show(message), "Say which input is stale.")
        for wrong, hint in (
            (new | {"nothing": [1, 2, 3]}, "The tape has no input of the name nothing. Is it a slip of the pen?"),
            (new | {brought[-1]: [1, 2]}, f"{brought[-1]} holds three numbers, and two were brought."),
        ):
            refused(trial, bench, tape, f"replay_fresh({what}, {wrong}, weights={kept})", wrong, kept, hint)
