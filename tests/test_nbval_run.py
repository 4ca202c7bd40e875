"""Notebooks under nbval: what must not pass, does not. Each case is one of nbval's own ways of letting it pass."""

from __future__ import annotations

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


@pytest.fixture
def run(tmp_path):
    """Runs a notebook of these cells and returns the problems found."""

    def run(*cells, cell_timeout_s: float = 60) -> list[str]:
        path = tmp_path / "example.ipynb"
        nbformat.write(new_notebook(cells=list(cells), metadata=METADATA), path)
        return nbval_run.run([path], tmp_path, cell_timeout_s)

    return run


def test_a_notebook_whose_outputs_are_right_passes(run):
    assert run(cell("x = 2"), cell("print(x)", prints="2\n")) == []


def test_a_wrong_stored_output_fails(run):
    (problem,) = run(cell("print(2)", prints="3\n"), cell("x = 1"))
    assert "failure" in problem


def test_a_cell_that_raises_fails(run):
    assert run(cell("1 / 0"))


def test_a_stored_output_without_an_execution_count_fails(run):
    assert run(cell("print(2)", prints="2\n", count=None))


def test_a_cell_that_takes_too_long_fails(run):
    (problem,) = run(cell("import time; time.sleep(30)"), cell("x = 1"), cell_timeout_s=2)
    assert "Cell 0" in problem
    assert "failure" in problem


def test_a_cell_that_is_skipped_fails(run):
    assert run(cell("# NBVAL_SKIP\n1 / 0"))


def test_a_kernel_that_dies_fails(run):
    assert run(cell("import os; os._exit(1)"), cell("x = 1"), cell_timeout_s=5)
