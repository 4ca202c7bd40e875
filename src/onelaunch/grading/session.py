"""Grades one notebook from outside: writes what is to be run, has ``runner`` run it in a process with limits, and makes
one result of what the check said and what nbval saw. A check passes only where both agree."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onelaunch.grading.base import FAIL, OUR_FAULT, PASS, Exercise, Verdict
from onelaunch.grading.submission import VERDICTS, CannotGrade, Submission, read

NEEDED = {"pytest": "pytest", "nbval": "nbval", "ipykernel": "ipykernel"}
START_SECONDS = 60.0


@dataclass
class Result:
    """A graded notebook. notes: what a learner should know beside the verdicts, such as an answer cell that raised."""

    path: str
    exercise: Exercise
    verdicts: list[Verdict]
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def score(self) -> int:
        """How many checks passed."""
        return sum(verdict.status == PASS for verdict in self.verdicts)


def grade(path: Path, seconds: float | None = None) -> Result:
    """Grade the notebook at ``path``. seconds: for one check or answer cell; as the exercise says if None. Raises
    CannotGrade."""
    missing = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise CannotGrade(f"grading needs {', '.join(missing)}: pip install 'onelaunch[grade]'")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="onelaunch-grade-") as name:
        folder = Path(name)
        submission = read(path, folder, seconds)
        trouble = run(submission, folder)
        if trouble:
            raise CannotGrade(f"{path} could not be run: {trouble}.")
        seen, written = outcomes(folder), _lines(folder / VERDICTS)
        verdicts = [
            conclude(submission, cell, seen.get(cell["id"], {}), written) for cell in submission.cells if "seal" in cell
        ]
        notes = [*submission.notes, *answer_notes(submission, seen)]
    return Result(str(path), submission.exercise, verdicts, notes, time.perf_counter() - start)


def run(submission: Submission, folder: Path) -> str:
    """Run the notebook in a process of its own. Returns what went wrong with the process, empty if nothing did."""
    cell_seconds = 2 * submission.seconds + 2  # the check stops itself first, where it can
    job = {
        "seconds": cell_seconds,
        "memory_bytes": submission.exercise.memory_bytes,
        "cells": [{"id": cell["id"], "role": cell["role"]} for cell in submission.cells],
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    (folder / "graded.ipynb").write_text(json.dumps(submission.notebook()), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "NBVAL"))}
    env |= {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "IPYTHONDIR": str(folder / "ipython"),  # no start-up files of the user
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    command = [sys.executable, "-m", "onelaunch.grading.runner", str(folder)]
    limit = START_SECONDS + len(submission.cells) * (cell_seconds + START_SECONDS / 10)
    with (folder / "said").open("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            return f"it took more than {limit:.0f} s in all"
        finally:
            end(process)
        if outcomes(folder):
            return ""
        said.seek(0)
        return " ".join(said.read()[-500:].split()) or f"the process ended with {process.returncode}"


def end(process: subprocess.Popen[bytes]) -> None:
    """End the process and what it started, kernels included; they notice that it is gone."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def outcomes(folder: Path) -> dict[str, dict[str, Any]]:
    """What nbval saw: cell id -> outcome."""
    return {line["id"]: line for line in _lines(folder / "outcomes.jsonl")}


def conclude(
    submission: Submission, cell: dict[str, Any], seen: dict[str, Any], written: list[dict[str, Any]]
) -> Verdict:
    """The verdict on one check. seen: what nbval saw of it. written: what the checks wrote, each under its seal."""
    own = next((line for line in written if line.get("seal") == cell["seal"]), None)
    if own is not None:
        fields = {name: value for name, value in own.items() if name not in ("seal", "hints")}
        verdict = Verdict(**fields, hints=tuple(own["hints"]))
        if verdict.status != PASS or seen.get("passed"):
            return verdict
        return replace(verdict, status=FAIL, expected="nothing else shown", got="other output while the check ran")
    check = submission.exercise.numbered(int(cell["role"].removeprefix("check:")))
    failed = Verdict(submission.exercise.key, check.number, check.title, FAIL, hints=check.hints)
    if seen.get("died"):
        got = "Python ended, or could not be stopped, while the check ran"
        return replace(failed, got=got, hint="Is there an exit, or a loop that never ends?")
    if "Timeout" in seen.get("why", ""):
        return replace(failed, got="no answer in time", hint="Is there a loop that never ends?")
    if seen.get("error", "").startswith("KeyboardInterrupt"):
        return replace(failed, got="KeyboardInterrupt", hint="Only a person interrupts; an answer returns its result.")
    return replace(failed, status=OUR_FAULT, got=seen.get("error") or seen.get("why") or "the check was not run")


def answer_notes(submission: Submission, seen: dict[str, dict[str, Any]]) -> list[str]:
    """A sentence for each cell that did not run."""
    notes = []
    for cell in submission.cells:
        outcome = seen.get(cell["id"], {})
        if cell["role"].startswith("check:") or outcome.get("passed", False):
            continue
        why = outcome.get("error") or outcome.get("why") or "it was not run"
        if outcome.get("died"):
            why = "it ended Python, or could not be stopped"
        elif "Timeout" in outcome.get("why", ""):
            why = "it ran too long and was stopped"
        name = f"the cell {cell['role']}" if cell["role"] != "setup" else "a cell of the exercise itself"
        notes.append(f"{name} did not run: {why}")
    return notes


def _lines(file: Path) -> list[dict[str, Any]]:
    """The lines of a file of JSON that are whole."""
    found = []
    if file.exists():
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
    return [line for line in found if isinstance(line, dict)]
