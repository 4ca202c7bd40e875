"""The strict build: what must stop it, does, also the second time; and what changed is built again, nothing else.

A small book in a folder of its own, with the configuration and the scripts of this one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from notebook_build import METADATA, to_text
from project import ROOT

PAGE = "notebooks/00_page"


@pytest.fixture
def book(tmp_path) -> Path:
    """A book of one chapter, which shows what stands in src/value.txt and counts how often it was executed."""
    shutil.copytree(ROOT / "book", tmp_path / "book", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "_config.yml", tmp_path)
    (tmp_path / "_toc.yml").write_text(f"format: jb-book\nroot: {PAGE}\n")
    for folder in ("src", "notebooks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "src" / "value.txt").write_text("value one")
    write_chapter(tmp_path, "print(open('../src/value.txt').read()); open('../runs', 'a').write('x');")
    return tmp_path


def write_chapter(book: Path, code: str, text: str = "# A chapter") -> None:
    cells = [nbformat.v4.new_markdown_cell(text, id="title"), nbformat.v4.new_code_cell(code, id="code")]
    chapter = nbformat.v4.new_notebook(cells=cells, metadata=METADATA)
    (book / f"{PAGE}.ipynb").write_text(to_text(chapter))


def build(book: Path) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, str(book / "book" / "scripts" / "build_site.py")]
    return subprocess.run(command, cwd=book, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def runs(book: Path) -> int:
    return len((book / "runs").read_text())


@pytest.mark.slow
def test_only_what_changed_is_built_again(book):
    first = build(book)
    assert first.returncode == 0, first.stdout
    page = book / "_build" / "html" / f"{PAGE}.html"
    assert "value one" in page.read_text()
    assert str(book / "_build" / "html" / "index.html") in first.stdout

    again = build(book)
    assert "nothing changed" in again.stdout
    assert runs(book) == 1

    chapter = nbformat.read(book / f"{PAGE}.ipynb", as_version=4)
    write_chapter(book, chapter.cells[1].source, "# A chapter with another title")
    assert build(book).returncode == 0
    assert "another title" in page.read_text()
    assert runs(book) == 1, "words were changed, no code: nothing is executed"

    (book / "src" / "value.txt").write_text("value two")
    assert build(book).returncode == 0
    assert "value two" in page.read_text()


@pytest.mark.slow
def test_a_chapter_that_fails_stops_the_build_every_time(book):
    write_chapter(book, "print('about to fail')\n1 / 0")
    for _ in range(2):
        done = build(book)
        assert done.returncode != 0
        shown = done.stdout.split("The cell that failed")[1]
        assert "about to fail" in shown
        assert "ZeroDivisionError" in shown
    write_chapter(book, "print('mended')")
    assert build(book).returncode == 0


@pytest.mark.slow
def test_a_warning_stops_the_build_every_time(book):
    write_chapter(book, "1", "# A chapter\n\n[nowhere](missing.md)")
    for _ in range(2):
        done = build(book)
        assert done.returncode != 0
        assert "missing.md" in done.stdout
