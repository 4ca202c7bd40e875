"""Exercise 2, pad a batch: the size that it runs as, its rows, and what comes back. Plain Python."""

from __future__ import annotations

from collections.abc import Sequence

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, show

exercise = Exercise("ex02", "Pad a batch")

LIST = [1, 2, 4, 8, 16, 24, 32]


def smallest(size: int, sizes: Sequence[int]) -> int | None:
    """The right answer, by looking at every size."""
    return min((recorded for recorded in sizes if recorded >= size), default=None)


def some_sizes(trial: Trial) -> list[int]:
    """An ascending list with a gap of at least two after its first size."""
    sizes = sorted(trial.rng.sample(range(1, 30), trial.rng.randint(2, 7)))
    return [*sizes, sizes[-1] + trial.rng.randint(3, 20)]


@exercise.check(
    "the smallest size that holds the batch",
    hints=(
        "A graph of 4 rows can run 3 requests. A graph of 2 cannot.",
        "Keep the sizes that are large enough, then take the smallest of them.",
        "min(recorded for recorded in sizes if recorded >= size) is nearly all of it.",
    ),
)
def between_two_sizes(trial: Trial) -> None:
    """Batches between two recorded sizes."""
    for size in (3, 5, 9, 17, 31):
        trial.expect("captured_size", size, LIST, expected=smallest(size, LIST))
    for _ in range(20):
        sizes = some_sizes(trial)
        size = trial.rng.randint(sizes[-2] + 1, sizes[-1] - 1)
        trial.expect("captured_size", size, sizes, expected=smallest(size, sizes))


@exercise.check(
    "at the edges: a recorded size is its own, above the largest there is none",
    hints=(
        "Try the batches 4 and 33 on the list [1, 2, 4, 8, 16, 24, 32].",
        "A batch of exactly 4 needs no padding; one of 33 fits into no graph, and that is None.",
        "Compare with >=, and give min a default: min(..., default=None).",
    ),
)
def edges(trial: Trial) -> None:
    """Batches of a recorded size, and above all of them."""
    for sizes in (LIST, some_sizes(trial), some_sizes(trial), [5]):
        for size in sizes:
            trial.expect("captured_size", size, sizes, expected=size)
        for size in (sizes[-1] + 1, 2 * sizes[-1] + 1):
            trial.expect("captured_size", size, sizes, expected=None)
    trial.expect("captured_size", 1, [], expected=None, hint="An engine without graphs has an empty list.")


@exercise.check(
    "the order of the list does not matter, and the list stays as it is",
    hints=(
        "Engines record the largest size first. The list may come in that order.",
        "The first size that fits need not be the smallest.",
        "min looks at all of them. If you sort, sort a copy: sorted(sizes), not sizes.sort().",
    ),
)
def any_order(trial: Trial) -> None:
    """The list in other orders, and unchanged afterwards."""
    for _ in range(20):
        sizes = some_sizes(trial)
        trial.rng.shuffle(sizes)
        size = trial.rng.randint(1, max(sizes))
        trial.expect("captured_size", size, sizes, expected=smallest(size, sizes))
        trial.expect("captured_size", size, sorted(sizes)[::-1], expected=smallest(size, sizes))
    hint = "Sort a copy: the engine still needs its list."
    trial.keeps("captured_size", 3, [32, 8, 4, 16, 1], expected="the list as it was", hint=hint)


@exercise.check(
    "the requests first, in their order, then dummies",
    hints=(
        "Row 0 of the result belongs to the first request.",
        "The number of dummies is the padded size less the number of requests.",
        "A list times a number repeats it: [dummy] * 3.",
    ),
)
def rows(trial: Trial) -> None:
    """What a padded batch holds."""
    trial.expect("pad_batch", ["a", "b", "c"], LIST, "dummy", expected=["a", "b", "c", "dummy"])
    for _ in range(20):
        sizes = some_sizes(trial)
        reqs = [f"req{at}" for at in trial.rng.sample(range(100), trial.rng.randint(1, sizes[-1] - 1))]
        padded = smallest(len(reqs), sizes) or 0
        trial.expect("pad_batch", reqs, sizes, -1, expected=reqs + [-1] * (padded - len(reqs)))


@exercise.check(
    "a new list: the batch itself is not padded",
    hints=(
        "The engine still asks the batch who is really in it.",
        "append, extend and += change the list that was handed in.",
        "reqs + [dummy] * n makes a new list; where there is nothing to add, list(reqs) does.",
    ),
)
def not_in_place(trial: Trial) -> None:
    """The list handed in stays as it was, also where nothing is added or no size fits."""
    for count, size in ((3, 4), (4, 4), (33, 33)):
        reqs = [f"req{at}" for at in range(count)]
        given, padded = list(reqs), reqs + ["dummy"] * (size - count)
        call = f"pad_batch(a list of {count}, {LIST}, 'dummy')"
        with trial.running(call):
            got = trial.answer("pad_batch")(given, list(LIST), "dummy")
        hint = "A batch that fits into no graph runs eagerly, as it is." if count == 33 else ""
        trial.equal(got, padded, call=call, hint=hint)
        if given != reqs:
            raise Wrong(call, f"the list with its {count} requests", show(given), "Build a new list.")
        if got is given:
            raise Wrong(call, "a new list", "the very list that was handed in", "Return a copy.")


@exercise.check(
    "the step sees a recorded size, the caller its requests' results alone",
    hints=(
        "Whom does the result of a dummy's row belong to?",
        "Run the step on the padded rows, then keep as many results as there were requests.",
        "The requests are the first rows, so results[:len(reqs)] are theirs.",
    ),
)
def pad_and_slice(trial: Trial) -> None:
    """A step that takes recorded sizes only; above the largest it runs as it is."""
    for count in (3, 4, 1, 33, 40, *(trial.rng.randint(1, 32) for _ in range(10))):
        reqs = [trial.rng.randint(0, 999) for _ in range(count)]
        seen: list[list[int]] = []

        def step(batch: Sequence[int], seen: list[list[int]] = seen) -> list[int]:
            seen.append(list(batch))
            return [7 * row + 1 for row in batch]

        right = [7 * row + 1 for row in reqs]
        size = smallest(count, LIST) or count
        call = f"run_padded(step, {show(reqs)}, {LIST}, dummy=-1)"
        with trial.running(call, show(right)):
            got = trial.answer("run_padded")(step, list(reqs), list(LIST), -1)
        eager = "33 and more fit into no graph: call the step with the batch as it is." if count > LIST[-1] else ""
        rows_seen = f"one step with {size} rows"
        if [len(batch) for batch in seen] != [size]:
            raise Wrong(call, rows_seen, f"steps with {[len(batch) for batch in seen]} rows", eager)
        trial.equal(seen[0], reqs + [-1] * (size - count), call=f"{call}, the rows that the step saw", hint=eager)
        trial.equal(got, right, call=call)
