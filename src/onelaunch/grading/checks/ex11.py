"""Exercise 11, find the silent bug: a diagnosis for each of eight runners, and two mends, which are captured, replayed
and looked at by the sanitizer. One of the alternative answers asks it, which tests that the diagnoses are its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, same, show, written

exercise = Exercise("ex11", "Find the silent bug", seconds=20.0)

RIGHT: dict[str, tuple[str, str | None]] = {
    "diagnosis_1": ("stale-input", "fixed.positions"),
    "diagnosis_2": ("moved-address", "fixed.table"),
    "diagnosis_3": ("frozen-value", "state.temperature"),
    "diagnosis_4": ("frozen-branch", "state.longest"),
    "diagnosis_5": ("overwritten-output", "state.keys.1"),
    "diagnosis_6": ("padding-leak", "rows"),
    "diagnosis_7": ("lazy-init-recorded", "state.mean"),
    "diagnosis_8": ("silent-eager", None),
}
ALSO = {"diagnosis_5": "state.keys"}  # the dict, where the sanitizer names what is in it


def diagnosed(trial: Trial, name: str, hint: str) -> None:
    """Ask for a diagnosis. What is right is not shown: it would be the answer."""
    kind, tensor = RIGHT[name]
    call = f"{name}()"
    got = trial.call(name, expected="(kind, name)", call=call)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        raise Wrong(call, "two values: the kind and the name", show(got), 'Such as return "stale-input", "state.x".')
    if not any(same(got[0], one) for one, _ in RIGHT.values()):
        raise Wrong(call, "a kind from the table above", show(got[0]), "Copy its name from the table.")
    if not same(got[0], kind):
        raise Wrong(call, "the kind of this runner's fault", show(got[0]), hint)
    if not same(got[1], tensor) and not (name in ALSO and same(got[1], ALSO[name])):
        found = f"{show(got[1])}; the kind is right"
        raise Wrong(call, "the name of what has the fault", found, "From the owner on, as owners has it.")


@exercise.check(
    "runners 1 and 2: what the graph reads",
    hints=(
        "List what the graph reads, and beside it the line of prepare that writes there.",
        "One of the two writes too little, the other writes elsewhere.",
        "A buffer without a copy_ for i > 0 is stale; a buffer that is assigned anew has moved.",
    ),
)
def inputs(trial: Trial) -> None:
    """A stale input, and one that moved."""
    diagnosed(trial, "diagnosis_1", "Which buffer has the values of i = 0 at i = 1? Is it still the same tensor?")
    diagnosed(trial, "diagnosis_2", "At i = 2 the request has three pages. Where does fixed.table lie then?")


@exercise.check(
    "runners 3 and 4: what Python knew",
    hints=(
        "Which attribute that step reads is no tensor?",
        "At capture a number became an argument of a kernel, or decided which kernels there are.",
        "One divides by a float: it was written down. The other has an if: the other branch was never recorded.",
    ),
)
def frozen(trial: Trial) -> None:
    """A number, and a decision."""
    diagnosed(trial, "diagnosis_3", "Are the kernels those that eager would launch? And their arguments?")
    diagnosed(trial, "diagnosis_4", "Are the kernels of i = 2 those that were recorded?")


@exercise.check(
    "runners 5 and 6: what memory is shared",
    hints=(
        "Who else writes to the memory that is read here?",
        "Each replay writes its results to one place. And a maximum over all rows looks at all rows.",
        "What is kept without a clone is overwritten; what padded rows hold leaks into the scale.",
    ),
)
def shared(trial: Trial) -> None:
    """A kept output, and padding."""
    diagnosed(trial, "diagnosis_5", "After two replays, in how many places are the two keys?")
    diagnosed(trial, "diagnosis_6", "Put 1000 into the last row. Does the first row's result stay?")


@exercise.check(
    "runners 7 and 8: what happens once, and what does not happen",
    hints=(
        "Write down which lines run in the warm-up, in the capture, and in a replay.",
        "The second run of step is the capture. And False means that there is no replay.",
        "Zeros made in the capture are made again by each replay; a step without a graph has no tensor to blame.",
    ),
)
def once(trial: Trial) -> None:
    """An initialization in the graph, and a step without one."""
    diagnosed(trial, "diagnosis_7", "In which run is the mean made? Is that line's kernel in the graph?")
    diagnosed(trial, "diagnosis_8", "The values are right. What does prepare return at i = 2, and who hears of it?")


def mended(trial: Trial, name: str, args: Sequence[Any], right: list[Any], hint: str) -> None:
    """The case that ``name`` makes: its replays give ``right``, one a round, its step is captured, nothing is found."""
    from onelaunch.museum import Case

    call = written(name, tuple(args), {})
    with trial.running(call, "a Case"):
        makes: Callable[..., Any] = trial.answer(name)
        case, again = makes(*args), makes(*args)
    if not isinstance(case, Case) or not isinstance(again, Case):
        raise Wrong(call, "a Case", show(case))
    if case.rounds != len(right):
        raise Wrong(f"{call}.rounds", show(len(right)), show(case.rounds), "One round for each step after step 0.")
    if case.read is not None:
        raise Wrong(f"{call}.read", "None: what the step gives is judged", "a function")
    with trial.running(f"{call}.replayed()"):
        got = case.replayed()
    trial.equal(got, right, call=f"{call}.replayed()", hint=hint)
    with trial.running(f"{call}.sanitize()"):
        report = again.sanitize()
    if report.findings:
        one = report.findings[0]
        found = f"{one.kind}{f' {one.tensor}' if one.tensor else ''}: {one.why}"
        raise Wrong(f"{call}.sanitize()", "no finding", found, one.fix)


CACHE = (0.0, 1.0, 10.0, 100.0, 1000.0)


@exercise.check(
    "the table of pages stays where it is, and holds this step's pages alone",
    hints=(
        "How long may a request become? Make the table as long as that, once.",
        "Rows that this step does not use have to name the dummy's page, or they count an old page.",
        "Make torch.zeros(most, dtype=torch.int64) outside of prepare; in it zero_(), then write the first entries.",
    ),
)
def table(trial: Trial) -> None:
    """Requests that grow, and that shrink."""
    rng = trial.rng
    random = tuple(tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 4))) for _ in range(5))
    for pages in (((1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)), ((1,), (1, 2, 3), (4,), (2, 2)), random):
        right = [sum(CACHE[page] for page in step) for step in pages[1:]]
        most = max(len(step) for step in pages)
        mended(trial, "mended_2", (pages, most), right, "The same memory in each step, and no page of the step before.")


@exercise.check(
    "the history is kept where no replay writes",
    hints=(
        "state.key is one tensor. How many keys can it hold?",
        "Take a copy of a key before the next replay. A copy that is made in the step is in the graph's memory again.",
        "state.keys[i - 1] = state.key.clone(), in prepare.",
    ),
)
def history(trial: Trial) -> None:
    """Values of which each sum is exact."""
    random = tuple(float(trial.rng.randint(1, 99)) for _ in range(6))
    for values in ((1.0, 10.0, 100.0, 1000.0), random):
        right = [[2 * sum(values[1 : i + 1])] for i in range(1, len(values))]
        mended(
            trial, "mended_5", (values,), right, "At step i all keys from 1 to i - 1 have to be there, each as it was."
        )
