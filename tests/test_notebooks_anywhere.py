"""Every notebook runs with nothing but itself: an empty folder, a Python that lacks onelaunch, and its first cell.

The environment stands in for Colab: torch and the libraries are there, the package is not. pip gets it from this
checkout through ONELAUNCH_SOURCE, and must leave the torch that it found alone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from project import ROOT, sources

NOTEBOOKS = [source.with_suffix(".ipynb") for source in sources()]
WHAT_IS_THERE = """
import json, onelaunch, torch
print(json.dumps({"onelaunch": onelaunch.__file__, "torch": torch.__file__, "version": torch.__version__}))
"""


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A Python that sees all installed libraries but not onelaunch, as the Jupyter kernel "elsewhere"; its prefix.

    The libraries come through a path line, and Python reads no .pth files in folders that are added that way: that
    leaves out the editable install, and nothing else.
    """
    prefix = tmp_path / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(prefix), "platbase": str(prefix)}))
    (site / "libraries.pth").write_text("".join(f"{path}\n" for path in library_folders()))
    kernel = tmp_path / "jupyter" / "kernels" / "elsewhere"
    kernel.mkdir(parents=True)
    argv = [str(prefix / "bin" / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "elsewhere", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    return prefix


def library_folders() -> list[str]:
    return sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


def environment() -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")}
    # pip reads "no build isolation" the wrong way round in its environment: 0 turns the isolation off, so that
    # hatchling is taken from the installed libraries instead of a registry.
    return env | {"ONELAUNCH_SOURCE": str(ROOT), "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def ask(prefix: Path, code: str) -> subprocess.CompletedProcess[str]:
    command = [str(prefix / "bin" / "python"), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=prefix)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs_from_an_empty_folder_and_leaves_torch_alone(notebook, elsewhere, tmp_path):
    assert ask(elsewhere, "import onelaunch").returncode != 0, "onelaunch is there before the notebook ran"
    torch_before = ask(elsewhere, "import torch; print(torch.__file__, torch.__version__)").stdout.split()
    folder = tmp_path / "empty"
    folder.mkdir()
    shutil.copy(notebook, folder)

    book = nbformat.read(folder / notebook.name, as_version=4)
    book.cells.append(nbformat.v4.new_code_cell(WHAT_IS_THERE, id="what-is-there"))
    client = NotebookClient(book, timeout=600, kernel_name="elsewhere", resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment())

    found = json.loads(book.cells[-1].outputs[0].text)
    assert Path(found["onelaunch"]).is_relative_to(elsewhere)
    assert [found["torch"], found["version"]] == torch_before


@pytest.mark.slow
def test_the_first_cell_does_nothing_the_second_time(elsewhere, tmp_path):
    book = nbformat.read(NOTEBOOKS[0], as_version=4)
    (first,) = [cell for cell in book.cells if cell.id == "bootstrap"]
    assert ask(elsewhere, first.source).returncode == 0
    # No pip and no source any more: were the package fetched again, this would fail.
    again = "import os, sys; os.environ['ONELAUNCH_SOURCE'] = '/nowhere'\n" + first.source
    assert ask(elsewhere, again).returncode == 0


@pytest.mark.slow
def test_the_first_cell_says_what_failed(elsewhere):
    book = nbformat.read(NOTEBOOKS[0], as_version=4)
    (first,) = [cell for cell in book.cells if cell.id == "bootstrap"]
    done = ask(elsewhere, "import os; os.environ['ONELAUNCH_SOURCE'] = '/nowhere'\n" + first.source)
    assert done.returncode != 0
    assert "could not install onelaunch from /nowhere" in done.stderr
