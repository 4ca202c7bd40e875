"""Exercise 1, who waits: starts of kernels, who stands still, launch-bound or not, a graph's step. Plain Python."""

from __future__ import annotations

from collections.abc import Sequence

from onelaunch.grading.base import Exercise
from onelaunch.grading.trial import Trial

exercise = Exercise("ex01", "Who waits")


def start_times(kernels: Sequence[int], launch_us: int) -> list[float]:
    """The right answer, each by itself: the device was last idle before some kernel, and has run without a pause since.

    Floats, so that an answer may count in either kind of number.
    """
    return [
        float(max((first + 1) * launch_us + sum(kernels[first:at]) for first in range(at + 1)))
        for at in range(len(kernels))
    ]


def eager_us(kernels: Sequence[int], launch_us: int) -> float:
    """When the last kernel ends."""
    return start_times(kernels, launch_us)[-1] + kernels[-1] if kernels else 0.0


def waits(kernels: Sequence[int], launch_us: int) -> tuple[float, float]:
    """How long host and device wait."""
    step = eager_us(kernels, launch_us)
    return step - len(kernels) * launch_us, step - sum(kernels)


def graph_us_of(kernels: Sequence[int], graph_us: int, gap_us: int) -> float:
    """A graph's step, kernel by kernel."""
    now = float(graph_us)
    for at, kernel in enumerate(kernels):
        now += kernel + (gap_us if at else 0)
    return now


def some_kernels(trial: Trial, longest: int = 12) -> list[int]:
    """Short ones and long ones."""
    return [trial.rng.randint(1, longest) for _ in range(trial.rng.randint(2, 9))]


@exercise.check(
    "a kernel starts when its launch is over and the kernel before it has ended",
    hints=(
        "The first kernel cannot start at 0: it has to be launched.",
        "Launch number n is over at n * launch_us, whatever the device does. The host waits for nobody.",
        "start = max((at + 1) * launch_us, end_of_the_one_before), with at from 0.",
    ),
)
def alike(trial: Trial) -> None:
    """Steps whose kernels are alike: the host is slower, the device is, one kernel, none."""
    ahead = "The host launches on while the device is busy."
    first = "The first kernel starts when its launch is over."
    for kernels, launch_us, hint in (
        ([2, 2, 2], 5, ""),
        ([9, 9, 9], 5, ahead),
        ([5, 5, 5], 5, ""),
        ([3], 7, first),
        ([], 5, "A step may have no kernels."),
    ):
        trial.expect("starts", kernels, launch_us, expected=start_times(kernels, launch_us), hint=hint)
    for _ in range(20):
        kernels = [trial.rng.randint(1, 12)] * trial.rng.randint(2, 6)
        launch_us = trial.rng.randint(1, 12)
        trial.expect("starts", kernels, launch_us, expected=start_times(kernels, launch_us))


@exercise.check(
    "with kernels that differ, too: a long one lets the host get ahead",
    hints=(
        "While a long kernel runs, the host goes on launching. What becomes of the short ones behind it?",
        "No single pace holds for the whole step. Go from kernel to kernel.",
        "Keep one number, when the device is free: after each kernel it is that kernel's start and how long it runs.",
    ),
)
def mixed(trial: Trial) -> None:
    """Kernels of several lengths, the long ones in front, in the middle and at the end."""
    behind = "Behind the long kernel the next ones are launched already, and follow without a gap."
    for kernels in ([2, 2, 16, 2, 2], [16, 2, 2, 2, 2], [2, 2, 2, 2, 16], [1, 9, 1, 9]):
        trial.expect("starts", kernels, 5, expected=start_times(kernels, 5), hint=behind)
    for _ in range(40):
        kernels, launch_us = some_kernels(trial), trial.rng.randint(2, 9)
        trial.expect("starts", kernels, launch_us, expected=start_times(kernels, launch_us))


@exercise.check(
    "each waits for as much of the step as it does not work",
    hints=(
        "How long does the host work in a step? How long the device?",
        "The step lasts until its last kernel has ended. What a side does not work of it, it waits.",
        "step = starts(...)[-1] + kernels[-1]; the host waits step - len(kernels) * launch_us.",
    ),
)
def who_waits(trial: Trial) -> None:
    """Fixed steps for each way to wait, then random ones."""
    for kernels, hint in (
        ([2, 2, 2], "Here the device waits after each of its kernels, and the host only for the last one."),
        ([9, 9, 9], "Here the device waits only for the first launch."),
        ([2, 2, 16, 2, 2], ""),
        ([7], "One kernel: the device waits for the launch, the host for the kernel."),
        ([], "Without kernels there is no step."),
    ):
        trial.expect("waiting", kernels, 5, expected=waits(kernels, 5), hint=hint)
    for _ in range(20):
        kernels, launch_us = some_kernels(trial), trial.rng.randint(2, 9)
        trial.expect("waiting", kernels, launch_us, expected=waits(kernels, launch_us))


@exercise.check(
    "launch-bound: the device waits longer than the host",
    hints=(
        "In every step both wait a little. Who waits longer?",
        "waiting gives both. Compare them, and mind what equal means.",
        "host_us, device_us = waiting(...), then return device_us > host_us.",
    ),
)
def bound(trial: Trial) -> None:
    """Clear cases, one long kernel among many short ones, and equally long waits."""
    one_long = "One kernel is long, but on the whole the host is slower."
    for kernels, hint in (
        ([2] * 20, ""),
        ([12] * 20, "The device waits for its first launch, the host much longer."),
        ([2, 2, 16, 2, 2], one_long),
        ([1] * 9 + [30], one_long),
        ([24, 1, 1, 1], "Most kernels are short, but on the whole the device is slower."),
        ([1, 1, 1, 24], "Most kernels are short, but on the whole the device is slower."),
        ([5, 5, 5], "Both wait equally long: not launch-bound."),
        ([1, 9, 1, 9], "Both wait equally long: not launch-bound."),
        ([], "Without kernels nobody waits."),
    ):
        host_us, device_us = waits(kernels, 5)
        trial.expect("launch_bound", kernels, 5, expected=device_us > host_us, hint=hint)
    for _ in range(30):
        kernels, launch_us = some_kernels(trial), trial.rng.randint(3, 9)
        host_us, device_us = waits(kernels, launch_us)
        trial.expect("launch_bound", kernels, launch_us, expected=device_us > host_us)


@exercise.check(
    "a graph's step: one launch, the kernels, and the gaps between them",
    hints=(
        "Four kernels: how many gaps are between them?",
        "One launch for all, then the device runs one kernel after the other and waits for nobody.",
        "graph_us, and the sum of the kernels, and (len(kernels) - 1) * gap_us.",
    ),
)
def as_a_graph(trial: Trial) -> None:
    """Fixed and random graphs, one of a single kernel."""
    for kernels, graph_us, gap_us, hint in (
        ([2, 2, 2, 2], 10, 1, ""),
        ([7], 10, 3, "One kernel has no gap."),
        ([4, 4, 4], 10, 0, ""),
        ([1, 30, 1], 2, 1, ""),
    ):
        right = graph_us_of(kernels, graph_us, gap_us)
        trial.expect("graph_time", kernels, graph_us, gap_us, expected=right, hint=hint)
    for _ in range(20):
        kernels, graph_us, gap_us = some_kernels(trial), trial.rng.randint(1, 20), trial.rng.randint(0, 3)
        trial.expect("graph_time", kernels, graph_us, gap_us, expected=graph_us_of(kernels, graph_us, gap_us))


def steps_until(kernels: Sequence[int], launch_us: int, graph_us: int, gap_us: int, capture_us: int) -> int | None:
    """The right answer, by counting steps."""
    eager, graph = eager_us(kernels, launch_us), graph_us_of(kernels, graph_us, gap_us)
    if graph >= eager:
        return None
    steps = 0
    while capture_us + steps * graph > steps * eager:
        steps += 1
    return steps


@exercise.check(
    "a recording has paid off once the steps saved what it took, and for some steps never",
    hints=(
        "What does one replayed step save? How often has that to be saved?",
        "Divide capture_us by what a step saves, and round up: after half a step nothing is paid.",
        "None if saved <= 0, else -(-capture_us // saved), which rounds up and stays a whole number.",
    ),
)
def worth_it(trial: Trial) -> None:
    """Exact and inexact divisions, graphs that save nothing, and graphs that are slower."""
    short, exact = [2] * 10, "It took just as long: no longer, so it has paid off."
    saved = int(eager_us(short, 5) - graph_us_of(short, 10, 1))
    slower = "This graph's step is no faster."
    for kernels, costs, hint in (
        (short, (5, 10, 1, 10 * saved), exact),
        (short, (5, 10, 1, 10 * saved + 1), "Ten steps are not quite enough."),
        (short, (5, 10, 1, 10 * saved - 1), exact),
        (short, (5, 10, 1, 1), "One step has to be run before anything is saved."),
        ([20, 20, 20], (5, 5, 0, 100), slower),
        ([20, 20, 20], (5, 10, 1, 100), slower),
    ):
        trial.expect("pays_off", kernels, *costs, expected=steps_until(kernels, *costs), hint=hint)
    for _ in range(30):
        kernels = some_kernels(trial)
        costs = (trial.rng.randint(4, 9), trial.rng.randint(3, 12), trial.rng.randint(0, 2), trial.rng.randint(1, 900))
        trial.expect("pays_off", kernels, *costs, expected=steps_until(kernels, *costs))
