"""Runs notebooks under nbval; the only module of the book's scripts that knows nbval.

nbval 0.11 has ways of passing that are no pass: a cell with no execution count is not compared, after a time-out the
rest counts as expected failures, and a cell may be tagged away. So the report is read back and every code cell must
have passed, by count.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import nbformat

from elsewhere import KERNEL, Elsewhere
from notebook_build import CELL_TIMEOUT_S


def run(
    notebooks: Sequence[Path],
    root: Path,
    cell_timeout_s: float = CELL_TIMEOUT_S,
    where: Elsewhere | None = None,
) -> list[str]:
    """Run every cell of `notebooks` in fresh kernels and compare the checked ones. Returns what went wrong.

    where: the Python that runs them, each alone in a folder; without it this one does, where they lie. A kernel that
    dies is noticed only after `cell_timeout_s` (nbval's own default is 2000 s).
    """
    expected = sum(cell.cell_type == "code" for path in notebooks for cell in nbformat.read(path, as_version=4).cells)
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "report.xml"
        kernel, env = "--nbval-current-env", dict(os.environ)  # this interpreter, whatever kernels the user has
        if where is not None:
            kernel, env, root = f"--nbval-kernel-name={KERNEL}", where.environment, Path(temporary)
            notebooks = [alone(path, root / path.stem) for path in notebooks]
        command = [
            sys.executable, "-m", "pytest", "-v", "--durations=5",
            "--nbval-lax",  # compare only the cells that are tagged
            kernel,
            f"--nbval-cell-timeout={cell_timeout_s}",
            "--nbval-kernel-startup-timeout=120",
            f"--junitxml={report}",
            f"--rootdir={root}",
            *map(str, notebooks),
        ]  # fmt: skip
        # Hands the terminal to pytest, so that progress shows cell by cell.
        code = subprocess.run(command, cwd=root, env=env | {"PYTHONUNBUFFERED": "1"}).returncode
        if not report.exists():
            return [f"nbval did not get as far as a report (pytest exit code {code})"]
        return problems_in(report, expected)


def alone(notebook: Path, folder: Path) -> Path:
    """A copy of `notebook` in a new folder that holds nothing else."""
    folder.mkdir()
    return Path(shutil.copy(notebook, folder))


def problems_in(report: Path, expected: int) -> list[str]:
    """Read pytest's XML report: each of the `expected` code cells must have run and passed, none failed or skipped."""
    cases = list(ElementTree.parse(report).iter("testcase"))
    problems = []
    for case in cases:
        bad = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        if bad:
            problems.append(f"{case.get('classname')} {case.get('name')}: {', '.join(bad)}")
    if len(cases) != expected:
        problems.append(f"{len(cases)} cells were run, but the notebooks hold {expected} code cells")
    return problems
