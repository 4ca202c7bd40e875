"""A notebook needs nothing but itself: its first cell fetches onelaunch with pip and leaves torch alone.

`notebooks.py test` runs every notebook that way, from an empty folder in a Python that lacks onelaunch. All first cells
are the same, which `notebooks.py check` proves. Here stands what that cell does, and that the Python is what it says.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

import elsewhere
import nbval_run
from notebook_build import METADATA
from project import sources

WHAT_IS_THERE = """
import json, onelaunch, torch
print(json.dumps({"onelaunch": onelaunch.__file__, "torch": torch.__file__, "version": torch.__version__}))
"""


@pytest.fixture
def where(tmp_path: Path) -> elsewhere.Elsewhere:
    return elsewhere.make(tmp_path)


@pytest.fixture(scope="module")
def first_cell() -> str:
    book = nbformat.read(sources()[0].with_suffix(".ipynb"), as_version=4)
    (cell,) = [cell for cell in book.cells if cell.id == "bootstrap"]
    return cell.source


def ask(where: elsewhere.Elsewhere, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([where.python, "-c", code], capture_output=True, text=True, env=where.environment, cwd="/")


@pytest.mark.slow
def test_the_first_cell_fetches_the_package_once_and_leaves_torch_alone(
    where: elsewhere.Elsewhere, first_cell: str
) -> None:
    assert ask(where, "import onelaunch").returncode != 0, "onelaunch is there before the cell ran"
    torch_before = ask(where, "import torch; print(torch.__file__, torch.__version__)").stdout.split()
    done = ask(where, first_cell + WHAT_IS_THERE)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert Path(found["onelaunch"]).is_relative_to(where.prefix)
    assert [found["torch"], found["version"]] == torch_before
    # No pip and no source any more: were the package fetched again, this would fail.
    again = "import os, sys; os.environ['ONELAUNCH_SOURCE'] = '/nowhere'\n" + first_cell
    assert ask(where, again).returncode == 0


@pytest.mark.slow
def test_the_first_cell_says_what_failed(where: elsewhere.Elsewhere, first_cell: str) -> None:
    done = ask(where, "import os; os.environ['ONELAUNCH_SOURCE'] = '/nowhere'\n" + first_cell)
    assert done.returncode != 0
    assert "could not install onelaunch from /nowhere" in done.stderr


@pytest.mark.slow
def test_notebooks_are_run_there_with_nothing_beside_them(where: elsewhere.Elsewhere, tmp_path: Path) -> None:
    code = (
        "import importlib.util, os, sys\n"
        f"print(os.listdir(), importlib.util.find_spec('onelaunch'), sys.prefix == {str(where.prefix)!r})"
    )
    cell = new_code_cell(code, execution_count=1, metadata={"tags": ["nbval-check-output"]})
    cell.outputs = [new_output("stream", name="stdout", text="['example.ipynb'] None True\n")]
    nbformat.write(new_notebook(cells=[cell], metadata=METADATA), tmp_path / "example.ipynb")
    assert nbval_run.run([tmp_path / "example.ipynb"], tmp_path, 60, where) == []
