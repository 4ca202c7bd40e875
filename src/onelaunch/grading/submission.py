"""From a learner's notebook to the one that is graded: the pristine exercise with the learner's answer cells in it.

So a check that was deleted, skipped or edited is back, and nothing but the answers counts.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from onelaunch.grading import checks
from onelaunch.grading.base import PASS, Exercise
from onelaunch.grading.sealed import sealed

LARGEST_BYTES = 64 << 20
VERDICTS = "verdicts.jsonl"


class CannotGrade(Exception):
    """A notebook that cannot be graded. The message says why, and what to do."""


@dataclass
class Submission:
    """What is run. cells: code cells with ``id``, ``role`` (setup, answer:NAME, check:N) and ``source``; a check has
    ``seal`` and ``shows``, the line of a pass, too. seconds: for one check. notes: what a learner should know beside
    the verdicts."""

    exercise: Exercise
    cells: list[dict[str, Any]]
    seconds: float
    notes: list[str] = field(default_factory=list)

    def notebook(self) -> dict[str, Any]:
        """The notebook that nbval runs. Every cell counts as executed: nbval compares no other."""
        return {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
            "cells": [
                {
                    "cell_type": "code",
                    "id": cell["id"],
                    "metadata": {},
                    "execution_count": at,
                    "source": cell["source"],
                    "outputs": [{"output_type": "display_data", "metadata": {}, "data": {"text/plain": cell["shows"]}}]
                    if "shows" in cell
                    else [],
                }
                for at, cell in enumerate(self.cells, start=1)
            ],
        }


def released() -> dict[str, Path]:
    """The pristine notebooks: exercise -> file."""
    folder = Path(str(resources.files("onelaunch.grading"))) / "release"
    return {path.name[:4]: path for path in sorted(folder.glob("ex*.ipynb"))}


def read(path: Path, folder: Path, seconds: float | None = None) -> Submission:
    """What is to be run, in ``folder``, for the learner's notebook at ``path``. Raises CannotGrade."""
    return assemble(load(path), path.name, folder, seconds)


def load(path: Path) -> dict[str, Any]:
    """The notebook as JSON. Raises CannotGrade."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise CannotGrade(
                f"{path} has {path.stat().st_size >> 20} MiB: clear its outputs, save it, grade it again."
            )
        book = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise CannotGrade(f"there is no file {str(path)!r}.") from None
    except IsADirectoryError:
        raise CannotGrade(f"{str(path)!r} is a folder: name a notebook, or use --class for a folder of them.") from None
    except OSError as error:
        raise CannotGrade(f"{path} cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CannotGrade(f"{path} is no notebook: it is not JSON ({error}).") from error
    if not isinstance(book, dict) or not isinstance(book.get("cells"), list):
        raise CannotGrade(f"{path} is no notebook of nbformat 4: open it in Jupyter and save it again.")
    return book


def assemble(book: dict[str, Any], name: str, folder: Path, seconds: float | None = None) -> Submission:
    """The pristine exercise with the answers of ``book`` in it. name: the file's, which may say which exercise it is.
    folder: where the checks write their verdicts. seconds: for one check; as the exercise says if None."""
    answers = dict(_answers(book))
    key = _exercise_of(book, name, answers)
    exercise, pristine = checks.load(key), load(released()[key])
    made = Submission(exercise, [], exercise.seconds if seconds is None else seconds)
    for id_, role, source in code_cells(pristine):
        if role.startswith("answer:"):
            if role not in answers:
                made.notes.append(f"the cell {role} is missing; take it from a fresh copy of the exercise.")
            for at, text in enumerate(answers.get(role, [source])):
                made.cells.append({"id": f"{id_}-{at}", "role": role, "source": text})
        elif role.startswith("check:"):
            number, seal = int(role.removeprefix("check:")), secrets.token_hex(16)
            line = f"{PASS} {key}.{number} {exercise.numbered(number).title}"
            order = (key, number, seal, str(folder / VERDICTS), made.seconds)
            call = f"__import__('runpy').run_module('onelaunch.grading.sealed')['judge'](globals(), *{order!r})"
            made.cells.append({"id": id_, "role": role, "source": call, "seal": seal, "shows": sealed(line, seal)})
        elif role == "setup":
            made.cells.append({"id": id_, "role": role, "source": source})
    return made


def code_cells(book: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Id, role and source of each code cell of an exercise. A cell that only tries something out has the role try."""
    for at, cell in enumerate(book["cells"]):
        if cell.get("cell_type") == "code":
            tags = _tags(cell)
            role = next((tag for tag in tags if tag.startswith(("answer:", "check:")) or tag == "try"), "setup")
            yield str(cell.get("id") or f"cell-{at}"), role, _source(cell)


def _answers(book: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Answer cells of a learner's notebook, by tag or by id: role -> sources, from top to bottom."""
    found: dict[str, list[str]] = {}
    for cell in book["cells"]:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        metadata = cell.get("metadata")
        ids = [cell.get("id"), metadata.get("id") if isinstance(metadata, dict) else None]  # Colab keeps it there
        tags = [tag for tag in _tags(cell) if tag.startswith("answer:")]
        for tag in tags or [f"answer:{str(id_).removeprefix('answer-')}" for id_ in ids if _is_answer(id_)]:
            found.setdefault(tag.replace("-", "_"), []).append(_source(cell))
    yield from found.items()


def _is_answer(id_: object) -> bool:
    return isinstance(id_, str) and id_.startswith("answer-")


def _exercise_of(book: dict[str, Any], name: str, answers: dict[str, list[str]]) -> str:
    """The exercise that a notebook is: by its file's name, else by the names of its answers. Raises CannotGrade."""
    known = released()
    roles = {key: {role for _, role, _ in code_cells(load(path))} for key, path in known.items()}
    fitting = [key for key in known if roles[key] & set(answers)]
    named = re.match(r"ex\d\d", name)
    if named and named.group() in known and (named.group() in fitting or not fitting):
        return named.group()
    if len(fitting) == 1:
        return fitting[0]
    raise CannotGrade(
        f"{name} has no answer cells of an exercise that is known here ({', '.join(known) or 'none'}): "
        "copy your answers into a fresh copy of the exercise."
    )


def _tags(cell: dict[str, Any]) -> list[str]:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)
