"""Exercise 3, the list that wastes least: what a list wastes, what runs eagerly, the best list. Plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, show, written

exercise = Exercise("ex03", "The list that wastes least")

LIST = [1, 2, 4, 8, 16, 32, 48]


def rows_and_live(counts: Mapping[int, int], sizes: Sequence[int]) -> tuple[int, int]:
    """Rows computed and requests in them, of the replayed steps."""
    rows = live = 0
    for batch, steps in counts.items():
        fits = [size for size in sizes if size >= batch]
        if fits:
            rows, live = rows + min(fits) * steps, live + batch * steps
    return rows, live


def wasted(counts: Mapping[int, int], sizes: Sequence[int]) -> float:
    """The right answer."""
    rows, live = rows_and_live(counts, sizes)
    return (rows - live) / live if live else 0.0


def fewest_rows(counts: Mapping[int, int], budget: int) -> int:
    """The rows of the best list: for each top, the best cut below it."""
    batches = sorted(counts)
    steps = [0]
    for batch in batches:
        steps.append(steps[-1] + counts[batch])
    best = [0] + [batches[j] * steps[j + 1] for j in range(len(batches))]
    for _ in range(min(budget, len(batches)) - 1):
        best = [0] + [
            min(best[i] + batches[j] * (steps[j + 1] - steps[i]) for i in range(j + 1)) for j in range(len(batches))
        ]
    return best[-1]


def some_counts(trial: Trial, many: int = 8, top: int = 60, most: int = 50) -> dict[int, int]:
    """A histogram, in no order."""
    return {batch: trial.rng.randint(1, most) for batch in trial.rng.sample(range(1, top), many)}


def judged(trial: Trial, counts: dict[int, int], budget: int, hint: str = "", short: str = "") -> None:
    """Ask for a list. Any that is allowed and computes the fewest rows is right."""
    fewest = fewest_rows(counts, budget)
    call = short or written("best_list", (counts, budget), {})
    want = f"a list of at most {budget} that computes {fewest:,} rows"
    got = trial.call("best_list", counts, budget, expected=want, call=call)
    whole = isinstance(got, list) and all(isinstance(size, int) and not isinstance(size, bool) for size in got)
    if not whole or got != sorted(set(got)) or not got or got[0] < 1:
        raise Wrong(call, "an ascending list of whole numbers, each once", show(got), hint)
    if len(got) > budget:
        raise Wrong(call, want, f"{len(got)} sizes: {show(got)}", hint)
    if got[-1] < max(counts):
        raise Wrong(call, f"a list that holds the batch of {max(counts)}", show(got), hint)
    rows, _ = rows_and_live(counts, got)
    if rows != fewest:
        raise Wrong(call, want, f"{show(got)}, which computes {rows:,}", hint)


@exercise.check(
    "one batch: 37 run as 48 waste 11 rows for 37",
    hints=(
        "How many rows of the 48 belong to nobody? And for how many requests are they there?",
        "Divide the dummies by the requests, not by the size.",
        "(size - batch) / batch, with the smallest size that holds the batch; a list without one wastes nothing.",
    ),
)
def one_batch(trial: Trial) -> None:
    """A histogram with one entry."""
    for counts, sizes, hint in (
        ({37: 1}, LIST, ""),
        ({37: 9}, LIST, "Nine such steps waste nine times as much of nine times as many."),
        ({32: 3}, LIST, "A batch of a recorded size has no dummies."),
        ({3: 2}, [4], ""),
        ({49: 1}, LIST, "Above the list a step runs eagerly, without dummies."),
        ({5: 1}, [], "Without graphs every step runs eagerly."),
    ):
        trial.expect("waste", counts, sizes, expected=wasted(counts, sizes), within=1e-9, hint=hint)


@exercise.check(
    "a histogram: every replayed step counts, and only those",
    hints=(
        "400 steps of one request weigh more than one step of 37.",
        "Add up dummies and requests over all steps first; divide once, at the end.",
        "For each batch that a size holds: live += batch * steps; padded += (size - batch) * steps.",
    ),
)
def histogram(trial: Trial) -> None:
    """Fixed and random traffic, some of it above the list."""
    eager = "Eager steps have no dummies, and their requests don't count either."
    trial.expect("waste", {1: 100, 37: 1}, LIST, expected=11 / 137, within=1e-9, hint="Weigh each batch by its steps.")
    trial.expect("waste", {3: 10, 60: 10}, [4, 8], expected=1 / 3, within=1e-9, hint=eager)
    trial.expect("waste", {}, LIST, expected=0.0, hint="No steps, no waste.")
    for _ in range(20):
        counts = some_counts(trial)
        sizes = sorted(trial.rng.sample(range(1, 60), trial.rng.randint(1, 6)))
        trial.expect("waste", counts, sizes, expected=wasted(counts, sizes), within=1e-9)


@exercise.check(
    "the share of steps that no graph holds",
    hints=(
        "Which batches are above every recorded size?",
        "Count steps, not requests and not different batches.",
        "Steps above the largest size, divided by all steps; without sizes that is all of them.",
    ),
)
def eager(trial: Trial) -> None:
    """Lists that hold all, some and none."""
    for counts, sizes in (
        ({1: 90, 50: 10}, LIST),
        ({48: 7, 49: 1}, LIST),
        ({1: 1, 2: 2}, []),
        ({}, LIST),
        ({}, []),
        ({3: 4}, [4]),
        *((some_counts(trial), sorted(trial.rng.sample(range(1, 60), 3))) for _ in range(20)),
    ):
        above = sum(steps for batch, steps in counts.items() if not any(size >= batch for size in sizes))
        share = above / sum(counts.values()) if counts else 0.0
        trial.expect("eager_share", counts, sizes, expected=share, within=1e-9)


@exercise.check(
    "the best list of a small histogram, whatever the budget",
    hints=(
        "With one size only: which? With as many sizes as batches: which?",
        "A size between two batches is never better than the smaller of them. So choose among the batches.",
        "The largest batch is always in. Try every batch as the next size below, and solve the rest the same way.",
    ),
)
def small(trial: Trial) -> None:
    """A few batches; every budget from 1 to more than there are batches."""
    judged(trial, {3: 10, 8: 1}, 1, hint="Every batch has to fit.")
    judged(trial, {3: 10, 8: 1}, 5, hint="Two batches need no more than two sizes.")
    judged(trial, {1: 100, 2: 1, 10: 1}, 2, hint="What counts is how many steps have a batch.")
    judged(trial, {7: 3, 8: 40, 9: 3}, 2, hint="The most frequent batch need not be in the list.")
    for many in (1, 2, 4, 6):
        counts = some_counts(trial, many, top=30)
        for budget in range(1, many + 2):
            judged(trial, counts, budget)


@exercise.check(
    "the best list of 200 batches and 16 graphs, exactly, within seconds",
    hints=(
        "Adding the size that helps most, again and again, is good and not the best. Taking back may be needed.",
        "For each number of graphs and each largest batch keep the fewest rows: a table, filled from small to large.",
        "best[k][j] = min over i of best[k-1][i] + top_j * (steps of the batches between i and j).",
    ),
)
def large(trial: Trial) -> None:
    """Histograms on which greedy choices fail, then a large one."""
    judged(trial, {1: 10, 4: 12, 6: 11, 9: 10, 13: 9}, 3, hint="Greedy choices are not the best ones here.")
    for _ in range(8):
        judged(trial, some_counts(trial, 14, top=40), trial.rng.randint(3, 5))
    counts = {batch: max(1, 400 - batch + trial.rng.randint(0, 150)) for batch in range(1, 201)}
    judged(trial, counts, 16, short="best_list(a histogram of the batches 1 to 200, 16)")


@exercise.check(
    "the fewest graphs for a limit on waste",
    hints=(
        "More graphs never waste more. So which budget is the first that is good enough?",
        "Try budgets from 1 up, each with its best list.",
        "With as many graphs as there are batches nothing is wasted, so the search ends.",
    ),
)
def needed(trial: Trial) -> None:
    """Limits that are met exactly, nearly, and only without any waste."""

    def fewest(counts: Mapping[int, int], limit: float) -> int:
        live = sum(batch * steps for batch, steps in counts.items())
        return next(n for n in range(1, len(counts) + 1) if (fewest_rows(counts, n) - live) / live <= limit)

    for counts, limit, hint in (
        ({3: 1, 4: 1}, 1 / 7, "A waste of exactly the limit is allowed."),
        ({3: 1, 4: 1}, 0.0, "Without any waste every batch has its own size."),
        ({5: 8}, 0.0, ""),
        ({1: 1, 64: 1}, 5.0, ""),
        ({1: 400, 2: 250, 3: 120, 5: 90, 9: 60, 12: 30, 20: 15, 37: 5}, 0.1, ""),
    ):
        trial.expect("graphs_needed", counts, limit, expected=fewest(counts, limit), hint=hint)
    for _ in range(6):
        counts = some_counts(trial, 7)
        limit = trial.rng.choice((0.02, 0.1, 0.3))
        trial.expect("graphs_needed", counts, limit, expected=fewest(counts, limit))
