"""What is put beside an exercise's page: its cells, and a zip of exactly the files that judge it, none with torch."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import build_site
import exercise_pages
import pyodide_files
from project import ROOT

SRC = ROOT / "src"
THERE = exercise_pages.exercises(ROOT)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with a check, which imports as it is told to."""
    files = {
        "onelaunch/__init__.py": "",
        "onelaunch/grading/__init__.py": "",
        "onelaunch/grading/in_page.py": "import json",
        "onelaunch/grading/checks/__init__.py": "",
        "onelaunch/grading/checks/ex01.py": "from onelaunch import one\ndef later():\n    import torch, onelaunch.four",
        "onelaunch/one.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch, onelaunch.three",
        "onelaunch/two.py": "",
        "onelaunch/three.py": "",
        "onelaunch/four.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def notebooks(tmp_path: Path) -> dict[str, Path]:
    """An exercise whose cells import a module too."""
    cell = {"cell_type": "code", "metadata": {}, "source": ["import json\n", "from onelaunch.two import name"]}
    (tmp_path / "ex01_name.ipynb").write_text(json.dumps({"cells": [cell]}))
    return {"ex01": tmp_path / "ex01_name.ipynb"}


def test_the_modules_are_those_that_checks_and_cells_import(package, notebooks):
    names = exercise_pages.modules(package, notebooks)
    assert {Path(name).stem for name in names} == {"__init__", "in_page", "ex01", "one", "two"}
    assert len(names) == 7


@pytest.mark.parametrize("text", ["import torch", "try:\n    from torch import nn\nexcept ImportError: pass"])
def test_an_exercise_that_needs_torch_is_refused(package, notebooks, text):
    (package / "onelaunch/two.py").write_text(text)
    with pytest.raises(ValueError, match=r"imports torch.* which .*onelaunch\.two"):
        exercise_pages.modules(package, notebooks)


def test_a_cell_that_tries_an_answer_out_may_need_more_than_the_page_has(package, notebooks):
    (package / "onelaunch/two.py").write_text("import matplotlib.figure")
    book = json.loads(notebooks["ex01"].read_text())
    book["cells"][0]["metadata"]["tags"] = ["try"]
    notebooks["ex01"].write_text(json.dumps(book))
    assert "onelaunch/two.py" not in exercise_pages.modules(package, notebooks)
    assert not exercise_pages.runs_in_page(package, "from onelaunch.two import name")
    assert exercise_pages.runs_in_page(package, "import json\nfrom onelaunch.one import name")


def test_the_zip_holds_the_files_as_they_are_and_does_not_change_without_them(tmp_path):
    names = exercise_pages.modules(SRC, THERE)
    for target in (tmp_path / "one.zip", tmp_path / "two.zip"):
        exercise_pages.pack(SRC, names, target)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == {
            name: (SRC / name).read_bytes() for name in names
        }


def test_the_zip_alone_judges(tmp_path):
    """In a Python that has nothing else: no torch, and not this package from elsewhere."""
    exercise_pages.pack(SRC, exercise_pages.modules(SRC, THERE), tmp_path / "pack.zip")
    code = (
        "import json, sys; sys.path.insert(0, 'pack.zip')\n"
        "from onelaunch.grading.in_page import step\n"
        "step(json.dumps({'do': 'begin'}))\n"
        f"for key in {list(THERE)!r}:\n"
        "    print(json.loads(step(json.dumps({'do': 'check', 'exercise': key, 'number': 1})))['status'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["FAIL"] * len(THERE), "no answer is defined"


def test_the_cells_have_roles_and_names(tmp_path):
    def cell(source: str, *tags: str, kind: str = "code") -> dict[str, object]:
        return {"cell_type": kind, "source": [source], "metadata": {"tags": list(tags)} if tags else {}}

    book = [cell("b", "bootstrap"), cell("text", kind="markdown"), cell("s"), cell("a", "answer:pad_batch")]
    book += [cell("t", "try"), cell("c", "check:1"), cell("t2", "try", "nbval-check-output")]
    (tmp_path / "ex.ipynb").write_text(json.dumps({"cells": book}))
    found = [tuple(each.values()) for each in exercise_pages.cells(tmp_path / "ex.ipynb")]
    assert found == [
        ("setup", "1", "s"),
        ("answer", "pad_batch", "a"),
        ("try", "1", "t"),
        ("check", "1", "c"),
        ("try", "2", "t2"),
    ]


def test_the_list_of_exercises_says_where_each_is_done(tmp_path):
    (tmp_path / "exercises").mkdir()
    for name, title in (("ex02_pad_a_batch", "2: Pad a batch"), ("ex04_buffers", "4: GraphCaptureBuffer")):
        text = [f"# Exercise {title}\n", "\n", "*About 20 minutes. Easy. You need much.*\n"]
        cells = [{"source": text}, {"source": ["[Open](https://elsewhere/ex.ipynb)"]}]
        (tmp_path / "exercises" / f"{name}.ipynb").write_text(json.dumps({"cells": cells}))
    assert exercise_pages.listed(tmp_path) == [
        "- **2.** [Pad a batch](../exercises/ex02_pad_a_batch.ipynb). About 20 minutes. Easy. In the page.",
        "- **4.** [GraphCaptureBuffer](https://elsewhere/ex.ipynb). About 20 minutes. Easy. In Colab or Jupyter.",
    ]
    assert len(exercise_pages.listed(ROOT)) >= len(THERE)


def test_each_exercise_of_the_page_is_a_page():
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8").split()
    missing = [path.stem for path in THERE.values() if f"exercises/{path.stem}" not in toc]
    assert missing == [], "add it to _toc.yml, in the part Exercises"


def test_without_npm_the_site_is_built_and_the_build_says_so(monkeypatch, capsys):
    def fail() -> Path:
        raise pyodide_files.NotFetched("npm is not installed")

    monkeypatch.setattr(pyodide_files, "obtain", fail)
    assert build_site.page_python() == "elsewhere"
    assert "the site will carry no Python, because npm is not installed" in capsys.readouterr().out
    monkeypatch.setattr(pyodide_files, "obtain", Path)
    assert build_site.page_python() == "bundled"


def test_only_exercises_that_run_in_the_page_are_pages():
    assert exercise_pages.page_of("exercises/ex02_pad_a_batch") == "ex02"
    for name in (
        "exercises/ex04_fixed_buffers",
        "notebooks/ex02_x",
        "exercises/solutions/ex02_pad_a_batch",
        "book/index",
    ):
        assert exercise_pages.page_of(name) == ""
