"""Grades a folder of submissions in parallel, for teachers: one that is broken never stops the rest.

Each notebook is graded as ``session`` grades it, in processes of its own with limits on time and memory. So the threads
here only wait.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from onelaunch.grading import session
from onelaunch.grading.base import OUR_FAULT
from onelaunch.grading.session import Result
from onelaunch.grading.submission import CannotGrade

COLUMNS = ("submission", "exercise", "score", "of", "seconds", "checks", "notes")
# A spreadsheet would take a cell that begins with one of these for a formula, and a learner chooses the file's name.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Row:
    """One submission. name: its path inside the folder. result: None where it could not be graded; ``why`` says why."""

    name: str
    result: Result | None = None
    why: str = ""

    @property
    def graded(self) -> bool:
        """Whether the score is the learner's: it was run, and no check had a fault of ours."""
        return self.result is not None and all(verdict.status != OUR_FAULT for verdict in self.result.verdicts)

    @property
    def cells(self) -> tuple[object, ...]:
        """The columns of a CSV file, in the order of ``COLUMNS``."""
        if self.result is None:
            return (self.name, "", "", "", "", "", self.why)
        result = self.result
        checks = "; ".join(f"{verdict.number} {verdict.status}" for verdict in result.verdicts)
        key, of = result.exercise.key, len(result.verdicts)
        return (self.name, key, result.score, of, f"{result.seconds:.1f}", checks, "; ".join(result.notes))


def submissions(folder: Path) -> list[Path]:
    """The notebooks in ``folder`` and below, in order; hidden folders and those of checkpoints aside. Raises
    CannotGrade."""
    if not folder.is_dir():
        raise CannotGrade(f"{str(folder)!r} is no folder: --class wants one with notebooks in it.")
    found = [
        path
        for path in sorted(folder.rglob("*.ipynb"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise CannotGrade(f"there is no notebook (.ipynb) in {str(folder)!r} or below.")
    return found


def grade_all(
    paths: Sequence[Path], folder: Path, seconds: float | None = None, jobs: int | None = None
) -> Iterable[Row]:
    """A row for each notebook, as each is done.

    seconds: for one check. jobs: how many at once; one for each core if None, so that time limits mean what they say.
    """
    with ThreadPoolExecutor(max_workers=jobs or cores()) as pool:
        waiting = [pool.submit(_one, path, folder, seconds, session.grade) for path in paths]
        try:
            for done in as_completed(waiting):
                yield done.result()
        finally:  # an interrupt ends what has not begun
            pool.shutdown(cancel_futures=True)


def _one(path: Path, folder: Path, seconds: float | None, grade: Callable[[Path, float | None], Result]) -> Row:
    name = path.relative_to(folder).as_posix()
    try:
        return Row(name, grade(path, seconds))
    except CannotGrade as error:
        return Row(name, why=str(error))
    except Exception as error:  # whatever a file makes us do wrong, the others are still to be graded
        return Row(name, why=f"our fault, please report it: {type(error).__name__}: {error}")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write_csv(rows: Iterable[Row], path: Path) -> None:
    """Write the rows as CSV, in the order of their names."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(COLUMNS)
        for row in sorted(rows, key=lambda row: row.name):
            out.writerow([f"'{cell}" if str(cell).startswith(FORMULA) else cell for cell in row.cells])
