"""Notebooks under nbval: what must not pass, does not. Each case is one of nbval's own ways of letting it pass.

One run judges all of them, since starting pytest takes longer than most of the notebooks.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

import nbval_run
from notebook_build import METADATA


def cell(source: str, prints: str | None = None, count: int | None = 1):
    made = new_code_cell(source, execution_count=count)
    if prints is not None:
        made.metadata["tags"] = ["nbval-check-output"]
        made.outputs = [new_output("stream", name="stdout", text=prints)]
    return made


NOTEBOOKS = {
    "right": [cell("x = 2"), cell("print(x)", prints="2\n")],
    "wrong": [cell("print(2)", prints="3\n"), cell("x = 1")],
    "raises": [cell("1 / 0")],
    "uncounted": [cell("print(2)", prints="2\n", count=None)],
    "slow": [cell("import time; time.sleep(30)"), cell("x = 1")],
    "skipped": [cell("# NBVAL_SKIP\n1 / 0")],
    "dies": [cell("import os; os._exit(1)"), cell("x = 1")],
}


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What was found wrong with all of them."""
    folder = tmp_path_factory.mktemp("notebooks")
    paths = []
    for name, cells in NOTEBOOKS.items():
        paths.append(folder / f"{name}.ipynb")
        nbformat.write(new_notebook(cells=cells, metadata=METADATA), paths[-1])
    return nbval_run.run(paths, folder, cell_timeout_s=4)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("right", []),
        ("wrong", ["Cell 0: failure"]),
        ("raises", ["Cell 0: failure"]),
        ("uncounted", ["Cell 0: failure"]),  # a stored output without an execution count
        ("slow", ["Cell 0: failure"]),
        ("skipped", ["Cell 0: skipped"]),
        ("dies", ["Cell 0: failure", "Cell 1: skipped"]),
    ],
)
def test_only_what_is_right_passes(problems: list[str], name: str, found: list[str]) -> None:
    assert [problem for problem in problems if problem.startswith(name)] == [f"{name}.ipynb {what}" for what in found]


def test_nothing_else_is_found(problems: list[str]) -> None:
    assert all(problem.startswith(tuple(NOTEBOOKS)) for problem in problems)


def test_a_cell_that_was_never_run_is_missed(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text('<testsuites><testcase classname="a.ipynb" name="Cell 0"/></testsuites>')
    assert nbval_run.problems_in(report, expected=1) == []
    assert nbval_run.problems_in(report, expected=2) == ["1 cells were run, but the notebooks hold 2 code cells"]
