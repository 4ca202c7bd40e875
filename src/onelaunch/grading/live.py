"""Checks in a running notebook: what an exercise's cells call, and ``grade`` for where no command line is (Colab)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from onelaunch.grading import checks
from onelaunch.grading.base import PASS


def check(exercise: str, number: int, namespace: Mapping[str, Any] | None = None) -> None:
    """Judge one check and print its line; below a FAIL what was expected, what came, and a hint.

    namespace: where the answers are; the caller's globals if None. Raises ValueError for a check that does not exist.
    """
    found = sys._getframe(1).f_globals if namespace is None else namespace
    print(checks.load(exercise).judge(number, found).text())


def grade(exercise: str, hints: int = 0, namespace: Mapping[str, Any] | None = None) -> None:
    """Judge all checks of an exercise in this kernel, and print the score. hints: how many of three to show."""
    found = sys._getframe(1).f_globals if namespace is None else namespace
    verdicts = checks.load(exercise).judge_all(found)
    for verdict in verdicts:
        print(verdict.text(hints))
    print(f"{exercise}: {sum(verdict.status == PASS for verdict in verdicts)} of {len(verdicts)}")


class attempt:  # lower case, because it is used as a word: with attempt(): ...
    """``with attempt():`` runs a cell that tries an answer out; where there is none yet, it says so instead of
    stopping the notebook."""

    def __enter__(self) -> attempt:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> bool:
        if isinstance(error, NotImplementedError):
            print("Not started: write the answer above, then run this cell again.")
            return True
        return False
