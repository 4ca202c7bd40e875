"""Times many things in turn, round after round, for as long as one has.

All subjects are timed in every round, each round in another order. A machine that gets slower, or a neighbour that
comes and goes, then meets all of them alike, and differences between them stay what they are.
"""

from __future__ import annotations

import math
import random
import time
import timeit
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from onelaunch.timeline.fit import MIN_ROUNDS

Clock = Callable[[], float]
Key = TypeVar("Key", bound=Hashable)

SAMPLE_S = 5e-4  # long against the clock's resolution, short against a time slice of the system's
WARM_UP = 2  # rounds that do not count: caches fill, a GPU's clock goes up
LONGEST_BUDGET_S = 3600.0


class Subject(Protocol):
    """Something that can be timed. most: how many calls one sample may hold."""

    @property
    def most(self) -> int: ...

    def sample(self, number: int) -> float:
        """Seconds that ``number`` calls take together."""
        ...


@dataclass
class Statement:
    """A line of Python, timed without a function call around it.

    names: what the names in ``code`` stand for. mode: what it runs within. before: called ahead of each sample, and not
    timed.
    """

    code: str
    names: Mapping[str, Any]
    mode: Callable[[], AbstractContextManager[Any]] = nullcontext
    before: Callable[[], None] | None = None
    most: int = 10_000
    clock: Clock = time.perf_counter
    _timer: timeit.Timer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._timer = timeit.Timer(self.code, timer=self.clock, globals=dict(self.names))

    def sample(self, number: int) -> float:
        if self.before is not None:
            self.before()
        with self.mode():
            return self._timer.timeit(number)


def take_rounds(
    subjects: Mapping[Key, Subject], budget_s: float, clock: Clock = time.perf_counter, seed: int = 0
) -> NDArray[np.float64]:
    """Microseconds of one call, [rounds, subjects], in the order of ``subjects``.

    As many rounds as fit into ``budget_s`` seconds, and at least ``MIN_ROUNDS`` however long they take.
    """
    check_budget(budget_s)
    shuffle = random.Random(seed).shuffle
    start = clock()
    numbers = {key: _calls_in_a_sample(subject) for key, subject in subjects.items()}
    order = list(subjects)
    rows: list[list[float]] = []
    longest = 0.0
    for turn in range(-WARM_UP, 1_000_000):
        began = clock()
        if turn >= MIN_ROUNDS and began - start + longest > budget_s:
            break
        shuffle(order)
        row = {key: 1e6 * subjects[key].sample(numbers[key]) / numbers[key] for key in order}
        longest = max(longest, clock() - began)
        if turn >= 0:
            rows.append([row[key] for key in subjects])
    return np.array(rows)


def check_budget(budget_s: float) -> None:
    """Raise ValueError for a budget that is no length of time, or not a sensible one."""
    is_number = isinstance(budget_s, (int, float)) and not isinstance(budget_s, bool)
    if not is_number or not math.isfinite(budget_s) or not 0 < budget_s <= LONGEST_BUDGET_S:
        raise ValueError(
            f"the budget must be a number of seconds above 0 and up to {LONGEST_BUDGET_S:.0f}; found {budget_s!r}"
        )


def _calls_in_a_sample(subject: Subject) -> int:
    """How many calls take about ``SAMPLE_S``. The first ones do not count: they load, allocate and compile."""
    for _ in range(3):
        subject.sample(1)
    few = min(10, subject.most)
    seconds = min(subject.sample(few) for _ in range(3)) / few
    return subject.most if seconds <= 0 else max(1, min(subject.most, int(SAMPLE_S / seconds)))
