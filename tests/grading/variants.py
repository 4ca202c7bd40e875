"""Answers of an exercise without a kernel: its source's cells run in this process, some of them replaced."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import exercises
from onelaunch.grading import checks
from onelaunch.grading.base import Verdict
from project import repository

SOURCES = {path.stem[:4]: path for path in exercises.sources()}


@dataclass
class Variant:
    """Answer cells of an alternative or a mutant. fails: the check that a mutant must fail, 0 for an alternative."""

    path: Path
    key: str
    fails: int = 0
    answers: dict[str, str] = field(default_factory=dict)


def variants(folder: str) -> list[Variant]:
    """All files of exercises/alternatives or exercises/mutants."""
    found = []
    for path in sorted((exercises.SOURCES / folder).glob("*.py")):
        about, *cells = exercises.cells_of(path)
        number = re.match(r"Fails: (\d+)\n", about.source)
        made = Variant(path, path.stem[:4], int(number[1]) if number else 0)
        made.answers = {exercises.answer_of(cell): cell.source for cell in cells}
        found.append(made)
    return found


@cache
def built(key: str) -> exercises.Built:
    """The notebooks of an exercise, as its source builds them."""
    return exercises.build_one(SOURCES[key], repository())


def namespace(key: str, answers: dict[str, str] | None, stubs: bool = False) -> dict[str, Any]:
    """What a kernel would hold after the exercise's cells. answers: NAME -> source, in place of the reference's."""
    book = built(key).learner if stubs else built(key).solution
    names = {exercises.answer_of(cell) for cell in book.cells}
    assert set(answers or {}) <= names, f"{key} has no answer {set(answers or {}) - names}"
    found: dict[str, Any] = {"__name__": "answers"}
    for cell in book.cells:
        tags = cell.metadata.get("tags", [])
        aside = any(tag in ("bootstrap", "try") or tag.startswith("check:") for tag in tags)
        if cell.cell_type == "code" and not aside:
            source = (answers or {}).get(exercises.answer_of(cell), cell.source)
            exec(compile(source, f"<{cell.id}>", "exec", dont_inherit=True), found)
    return found


def judge(
    key: str, answers: dict[str, str] | None = None, stubs: bool = False, seed: int = 0, upto: int = 6
) -> list[Verdict]:
    """The verdicts on these answers, up to check ``upto``."""
    found = namespace(key, answers, stubs)
    exercise = checks.load(key)
    return [exercise.judge(check.number, found, seed) for check in exercise.checks[:upto]]
