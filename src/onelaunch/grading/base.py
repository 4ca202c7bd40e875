"""What a check is: a function that asks an answer questions, and the verdict that becomes of it.

An exercise is a list of checks. Each gets a ``Trial``, through which alone it runs the learner's code: what is raised
in there is the learner's, anything else is a fault of the check, and the verdict says which.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from onelaunch.grading.trial import NotStarted, TooLong, Trial, Wrong, silence, time_limit

PASS, FAIL, NOT_STARTED, OUR_FAULT = "PASS", "FAIL", "NOT STARTED", "OUR FAULT"


@dataclass(frozen=True)
class Verdict:
    """What one check found. call, expected and got say what went wrong, in the learner's terms; empty after a PASS."""

    exercise: str
    number: int
    title: str
    status: str
    call: str = ""
    expected: str = ""
    got: str = ""
    hint: str = ""
    hints: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The one line that is the same on every machine: ``PASS ex02.1 the smallest size that holds the batch``."""
        return f"{self.status} {self.exercise}.{self.number} {self.title}"

    def text(self, steps: int = 0) -> str:
        """The line, and below it what a learner needs. steps: how many of the prepared hints to add."""
        parts = [self.line]
        if self.status in (FAIL, OUR_FAULT):
            for name in ("call", "expected", "got"):
                value = getattr(self, name)
                parts += [f"    {name + ':':10}{value}"] if value else []
            parts += [f"    {'hint:':10}{self.hint}"] if self.hint and self.status == FAIL else []
        if self.status in (FAIL, NOT_STARTED):
            parts += [f"    {f'hint {at}:':10}{hint}" for at, hint in enumerate(self.hints[:steps], start=1)]
        return "\n".join(parts)


@dataclass(frozen=True)
class Check:
    """One question to the answers. hints: three, from a nudge to nearly the answer."""

    number: int
    title: str
    hints: tuple[str, ...]
    function: Callable[[Trial], None]


@dataclass
class Exercise:
    """An exercise and its checks, in order. seconds: how long one check or answer cell may take. memory_bytes: how much
    the kernel may allocate when it is graded from outside. heavy: whether a check takes long (tests then ask less)."""

    key: str
    title: str
    seconds: float = 5.0
    memory_bytes: int = 4 << 30
    heavy: bool = False
    checks: list[Check] = field(default_factory=list)

    def check(self, title: str, hints: tuple[str, str, str]) -> Callable[[Callable[[Trial], None]], Check]:
        """Make the decorated function the next check. title: what holds when it passes."""

        def add(function: Callable[[Trial], None]) -> Check:
            made = Check(len(self.checks) + 1, title, hints, function)
            self.checks.append(made)
            return made

        return add

    def numbered(self, number: int) -> Check:
        """Check ``number``, from 1. Raises ValueError where there is none."""
        if not isinstance(number, int) or not 1 <= number <= len(self.checks):
            raise ValueError(f"{self.key} has checks 1 to {len(self.checks)}; asked for {number!r}")
        return self.checks[number - 1]

    def judge(self, number: int, namespace: Mapping[str, Any], seed: int = 0, seconds: float | None = None) -> Verdict:
        """Run check ``number`` on the answers in ``namespace``. seed: of the random questions. Never raises for what
        an answer does, KeyboardInterrupt aside."""
        check = self.numbered(number)
        trial = Trial(namespace, random.Random(f"{self.key}.{number}.{seed}"))
        limit = self.seconds if seconds is None else seconds
        about: dict[str, str] = {}
        try:
            with silence(), time_limit(limit):
                check.function(trial)
            status = PASS
        except NotStarted:
            status = NOT_STARTED
        except Wrong as wrong:
            status = FAIL
            about = {"call": wrong.call, "expected": wrong.expected, "got": wrong.got, "hint": wrong.hint}
        except TooLong:
            inside = trial.inside
            status = FAIL if inside else OUR_FAULT
            about = {"call": inside, "got": f"no answer within {limit:g} s", "hint": "Is there a loop that never ends?"}
        except Exception:
            status = OUR_FAULT
            trace = traceback.format_exc(limit=-3).strip().replace("\n", "\n" + " " * 14)
            about = {"expected": "a check that works: please report this", "got": trace}
        if status == FAIL and not about["hint"]:
            about["hint"] = check.hints[0]
        return Verdict(self.key, number, check.title, status, hints=check.hints, **about)

    def judge_all(self, namespace: Mapping[str, Any], seed: int = 0, seconds: float | None = None) -> list[Verdict]:
        """All checks, in order."""
        return [self.judge(check.number, namespace, seed, seconds) for check in self.checks]
