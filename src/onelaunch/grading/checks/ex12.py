"""Exercise 12, launch cost and bandwidth: a median under a clock that is simulated, a line of least squares, and both
numbers from timings whose truth is known. Plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial, Wrong, show

exercise = Exercise("ex12", "Launch cost and bandwidth from timings")

EXACT, TRUTH = 1e-6, 0.05  # shares: rounding, and what one per cent of noise may do
SIZES = [2**k for k in range(20, 33)]  # a megabyte to four gigabytes


def timed(trial: Trial, durations: Sequence[Sequence[float]], warm: Sequence[float], hint: str) -> None:
    """Ask for a median. durations: microseconds of each call of each round. warm: those of the warm-up."""
    rounds, calls = len(durations), len(durations[0])
    times = sorted(sum(one) / calls for one in durations)
    right = (times[rounds // 2] + times[(rounds - 1) // 2]) / 2
    ahead = [*warm, *(us for one in durations for us in one)]
    now, ran = [1000.0], [0]

    def call() -> None:
        now[0] += (ahead[ran[0]] if ran[0] < len(ahead) else 1e6) / 1e6
        ran[0] += 1

    written = f"median_us(call, clock, warmup={len(warm)}, rounds={rounds}, calls={calls})"
    per_round = [round(sum(one) / calls, 3) for one in durations]
    about = f"{written}, where a call takes {per_round} µs in the rounds"
    got = trial.call("median_us", call, lambda: now[0], len(warm), rounds, calls, expected=show(right), call=about)
    if ran[0] != len(ahead):
        raise Wrong(written, f"{len(ahead)} calls: warm-up and rounds", f"{ran[0]} calls", "Nothing else is run.")
    trial.equal(got, right, call=about, hint=hint, within=EXACT)


@exercise.check(
    "median_us: the middle round, in microseconds a call",
    hints=(
        "Where do seconds become microseconds, and a round one call?",
        "One number for each round: the two clock readings' difference, over calls, times a million. Then sort.",
        "(times[rounds // 2] + times[(rounds - 1) // 2]) / 2 is the median of a sorted list of any length.",
    ),
)
def median(trial: Trial) -> None:
    """Plain rounds, a slow warm-up, outliers, an even number of rounds."""
    timed(trial, [[10.0] * 2] * 3, [], "")
    timed(trial, [[10.0] * 4] * 5, [900.0, 400.0], "The warm-up does not count.")
    timed(trial, [[10.0, 10.0], [12.0, 12.0], [800.0, 9.0]], [50.0], "One round was interrupted: the median.")
    timed(trial, [[10.0], [12.0], [16.0], [800.0]], [50.0], "Four rounds have two middle ones.")
    for _ in range(10):
        calls = trial.rng.randint(1, 4)
        durations = [[float(trial.rng.randint(5, 90)) for _ in range(calls)] for _ in range(trial.rng.randint(1, 9))]
        timed(trial, durations, [300.0] * trial.rng.randint(0, 3), "")


def line(x: Sequence[float], times: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """The right answer, by the normal equations in fractions."""
    points = [(Fraction(w), Fraction(a), Fraction(t)) for w, a, t in zip(weights, x, times, strict=True)]
    w, wx = sum(w for w, _, _ in points), sum(w * a for w, a, _ in points)
    wxx, wt = sum(w * a * a for w, a, _ in points), sum(w * t for w, _, t in points)
    wxt = sum(w * a * t for w, a, t in points)
    each = (w * wxt - wx * wt) / (w * wxx - wx * wx)
    return float((wt - each * wx) / w), float(each)


@exercise.check(
    "fit_line: least squares, all points alike",
    hints=(
        "Not all points lie on the line. Which line has the smallest sum of squared distances?",
        "The line goes through the means; its slope is what x and times do together, over what x does.",
        "each = sum((x - mean_x) * (t - mean_time)) / sum((x - mean_x) ** 2); start = mean_time - each * mean_x",
    ),
)
def squares(trial: Trial) -> None:
    """On a line, beside it, in any order; and x that decide nothing."""
    asked: list[tuple[list[float], list[float], str]] = [
        ([0.0, 1.0, 2.0], [5.0, 7.0, 9.0], "The three lie on a line. Returned are (start, each), in this order."),
        ([1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 3.0, 9.0], "All points count, those between the ends too."),
        ([40.0, 10.0, 20.0], [3.0, 5.0, 1.0], "x may come in any order."),
        ([10.0, 10.0, 30.0], [1.0, 3.0, 9.0], "One x may have two times."),
    ]
    for _ in range(10):
        x = [float(at) for at in trial.rng.sample(range(50), 6)]
        asked.append((x, [float(trial.rng.randint(1, 99)) for _ in x], ""))
    for x, times, hint in asked:
        trial.expect("fit_line", x, times, expected=line(x, times, [1.0] * len(x)), hint=hint, within=EXACT)
    trial.raises("fit_line", [3.0, 3.0], [1.0, 2.0], hint="Both points have the same x: every slope fits alike.")
    trial.raises("fit_line", [3.0], [1.0], hint="One point decides no line.")


@exercise.check(
    "fit_line: weights",
    hints=(
        "A point of weight 2 counts like two points of weight 1. In which sums?",
        "In all of them: both means, the products, the squares.",
        "mean_x = sum(w * x) / sum(w), and w before each term of the two sums of the slope.",
    ),
)
def weighted(trial: Trial) -> None:
    """Whole numbers, where a weight repeats its point, and random ones."""
    x, times, weights = [1.0, 2.0, 4.0], [3.0, 8.0, 9.0], [1.0, 1.0, 2.0]
    twice = "A weight of 2 is the same point twice."
    trial.expect("fit_line", x, times, weights, expected=line(x, times, weights), hint=twice, within=EXACT)
    for _ in range(10):
        x = [float(at) for at in trial.rng.sample(range(50), 6)]
        times = [float(trial.rng.randint(1, 99)) for _ in x]
        weights = [trial.rng.randint(1, 64) / 16 for _ in x]
        trial.expect("fit_line", x, times, weights, expected=line(x, times, weights), within=EXACT)


def near(trial: Trial, name: str, data: Sequence[object], truth: tuple[float, float], hint: str) -> None:
    """Ask for launch and bandwidth; both have to be within ``TRUTH`` of the truth."""
    call = f"{name}(...) of simulated timings: {truth[0]} µs a launch, {truth[1]} GB/s"
    got = trial.call(name, *data, expected=show(truth), call=call)
    trial.equal(got, truth, call=f"{call}; within 5%", hint=hint, within=TRUTH)


def simulated(trial: Trial, launch_us: float, gb_per_s: float, noise: float = 0.01) -> list[float]:
    """A time in microseconds for each of SIZES. noise: largest share that it is off by."""
    right = [launch_us + size / (gb_per_s * 1e3) for size in SIZES]
    return [us * (1 + trial.rng.uniform(-noise, noise)) for us in right]


MACHINES = ((5.0, 1000.0), (2.5, 3000.0), (9.0, 500.0), (7.0, 2000.0))


@exercise.check(
    "launch_and_bandwidth: one per cent counts alike everywhere, and the units are right",
    hints=(
        "The longest time is off by more microseconds than a whole launch takes. What can it say about launches?",
        "Weights of 1 / time ** 2. The slope is in microseconds a byte; 1 GB/s is 1,000 bytes a microsecond.",
        "start, each = fit_line(sizes, times, [1 / t**2 for t in times]); return start, 1 / (each * 1e3)",
    ),
)
def both(trial: Trial) -> None:
    """Timings without noise, then with."""
    near(
        trial, "launch_and_bandwidth", (SIZES, simulated(trial, 5.0, 1000.0, 0.0)), (5.0, 1000.0), "Look at the units."
    )
    for truth in MACHINES * 4:
        near(trial, "launch_and_bandwidth", (SIZES, simulated(trial, *truth)), truth, "Weigh by 1 / time ** 2.")


@exercise.check(
    "fit_rounds: interrupted rounds do not count",
    hints=(
        "What is a typical time of one size, if a few of its rounds took three times as long?",
        "The median of each size, over the rounds. Then fit as before.",
        "zip(*rounds) gives the times of each size; sorted(column)[len(column) // 2] is the middle one.",
    ),
)
def outliers(trial: Trial) -> None:
    """Rounds of which some times are two to four times as long."""
    for truth in MACHINES:
        count = trial.rng.choice((7, 10, 15))
        rounds = [simulated(trial, *truth) for _ in range(count)]
        for at in range(len(SIZES)):
            for hit in trial.rng.sample(range(count), (count - 1) // 3):
                rounds[hit][at] *= trial.rng.uniform(2, 4)
        near(trial, "fit_rounds", (SIZES, rounds), truth, "A mean follows every outlier; a median does not.")
