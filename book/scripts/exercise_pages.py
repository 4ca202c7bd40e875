"""A Sphinx extension: exercises that need no torch run and are judged in the page.

The page is the learner's notebook. What is put beside it, as data for `book/_static/exercises/page.js`: the notebook's
cells, the titles and hints of its checks, and where the worker finds Python and the checks. The checks travel as a zip
of the very files of `src/onelaunch` that judge them everywhere else.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import pyodide_files

KEYS = ("ex01", "ex02", "ex03", "ex08", "ex10")
SCRIPTS = ("editor.js", "runner.js", "store.js", "page.js")  # in this order
WORKER = "worker.js"
SLOWER = 2  # a step gets this many times what it gets outside of a browser
PACKAGE = "onelaunch.zip"
ROLES = re.compile(r"(answer|check):(\w+)$")


def page_of(docname: str) -> str:
    """The exercise that a page is, if it is one that is judged in the page; empty for other pages."""
    found = re.fullmatch(r"exercises/(ex\d\d)_\w+", docname)
    return found[1] if found and found[1] in KEYS else ""


def exercises(root: Path) -> dict[str, Path]:
    """The notebooks of the exercises that are judged in the page: key -> file."""
    found = {page_of(f"exercises/{path.stem}"): path for path in sorted((root / "exercises").glob("ex*.ipynb"))}
    return {key: path for key, path in found.items() if key}


def cells(notebook: Path) -> list[dict[str, str]]:
    """The code cells of an exercise's notebook, the first one aside, which only finds the package.

    ``role`` is setup, answer, try or check; ``name`` is the answer's, the check's number, or a count of its role.
    """
    found: list[dict[str, str]] = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] != "code" or "bootstrap" in tags:
            continue
        role, name = next((match.groups() for tag in tags if (match := ROLES.match(tag))), ("", ""))
        role = role or ("try" if "try" in tags else "setup")
        name = name or str(sum(other["role"] == role for other in found) + 1)
        found.append({"role": role, "name": name, "source": "".join(cell["source"])})
    return found


def modules(source: Path, notebooks: dict[str, Path]) -> list[str]:
    """The files below ``source`` that these exercises need in a page: key -> notebook. Raises ValueError where one of
    them needs more than Python: what is judged in a page must come without."""
    wanted = ["onelaunch.grading.in_page", *(f"onelaunch.grading.checks.{key}" for key in notebooks)]
    for notebook in notebooks.values():
        for cell in cells(notebook):
            if cell["role"] != "try" or runs_in_page(source, cell["source"]):
                wanted += imported(ast.parse(cell["source"]))
    return sorted(file.relative_to(source).as_posix() for file in needed(source, wanted).values())


def needed(source: Path, names: list[str]) -> dict[str, Path]:
    """The modules below ``source`` that importing these loads, and their files. Raises ValueError for a package that
    is neither there nor Python's own."""
    wanted = list(names)
    found: dict[str, Path] = {}
    while wanted:
        name = wanted.pop()
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names and not (source / top).is_dir():
            read = ", ".join(sorted(found)) or "a cell alone"
            raise ValueError(f"an exercise of the page imports {name}, which a page has not; read so far: {read}")
        path = source.joinpath(*name.split("."))
        file = next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)
        if file is None or name in found:  # a name that is imported need not be a module, nor one of ours
            continue
        found[name] = file
        parents = [name.rsplit(".", at)[0] for at in range(1, name.count(".") + 1)]
        wanted += [*parents, *imported(ast.parse(file.read_text(encoding="utf-8")))]
    return found


def runs_in_page(source: Path, cell: str) -> bool:
    """Whether what a cell imports can be had in a page; a cell that draws with matplotlib cannot."""
    try:
        needed(source, list(imported(ast.parse(cell))))
    except ValueError:
        return False
    return True


def imported(tree: ast.AST) -> Iterator[str]:
    """What is imported when a module is. What a function imports once it is called does not count (the comparison of
    tensors, where there are any), nor what only a type checker sees."""
    for node in ast.iter_child_nodes(tree):
        checking = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        if checking or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from imported(node)


def pack(source: Path, names: list[str], target: Path) -> None:
    """A zip of these files below ``source``, the same bytes for the same files."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), (source / name).read_bytes(), zipfile.ZIP_DEFLATED)


def listed(root: Path) -> list[str]:
    """A line of Markdown for every exercise: its number and title, how long and hard it is, where it is done."""
    lines = []
    for notebook in sorted((root / "exercises").glob("ex[0-9][0-9]_*.ipynb")):
        book = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        text, link = ("".join(cell["source"]) for cell in book[:2])
        heading = re.match(r"# Exercise (\d+): (.+)", text)
        if heading is None:
            raise ValueError(f"{notebook} has to begin with '# Exercise N: its title'; found {text[:40]!r}")
        about = re.search(r"^\*(About .+?\. \w+\.)", text, flags=re.MULTILINE)
        colab = re.search(r"\((https://\S+)\)", link)
        in_page = page_of(f"exercises/{notebook.stem}")
        where = f"../exercises/{notebook.name}" if in_page else colab[1] if colab else ""
        how = "In the page." if in_page else "In Colab or Jupyter."
        lines.append(f"- **{heading[1]}.** [{heading[2]}]({where}). {about[1] + ' ' if about else ''}{how}")
    return lines


class ExerciseList(SphinxDirective):
    """``{exercise-list}``: all exercises, with where to do them."""

    def run(self) -> list[nodes.Node]:
        """The list, parsed as if it stood on the page."""
        found = nodes.Element()
        self.state.nested_parse(StringList(listed(Path(self.env.srcdir)), "exercises"), self.content_offset, found)
        return found.children


def prepare(app: Sphinx) -> None:
    """Put what the worker loads where Sphinx copies it from: the checks, and Python where npm could fetch it."""
    notebooks = exercises(Path(app.srcdir))
    if app.builder.format != "html" or not notebooks:
        return
    place = Path(app.outdir).parent / "in_page" / "exercises"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    source = Path(app.srcdir, "src")
    pack(source, modules(source, notebooks), place / PACKAGE)
    runtime = pyodide_files.cached()
    if runtime:
        shutil.copytree(runtime, place / "pyodide")
    app.config.html_static_path.append(str(place.parent))


def put_on_page(app: Sphinx, docname: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Add the data and the scripts to the page of an exercise."""
    key = page_of(docname)
    if not key or "body" not in context:
        return
    data = json.dumps(page_data(app, docname, key, context["pathto"])).replace("</", "<\\/")
    context["body"] += f'<script type="application/json" id="exercise">{data}</script>'
    app.add_css_file("exercises/exercises.css")
    for script in SCRIPTS:
        app.add_js_file(f"exercises/{script}", loading_method="defer")


def page_data(app: Sphinx, docname: str, key: str, pathto: Any) -> dict[str, Any]:
    """What the page's scripts need, as JSON."""
    from onelaunch.grading import checks

    exercise = checks.load(key)
    found = cells(Path(app.srcdir, f"{docname}.ipynb"))
    for cell in found:
        if cell["role"] == "try" and not runs_in_page(Path(app.srcdir, "src"), cell["source"]):
            cell["role"] = "elsewhere"  # stays on the page as it is
    place = Path(app.outdir).parent / "in_page" / "exercises"
    bundled = (place / "pyodide").is_dir()

    def static(file: Path) -> str:
        version = hashlib.sha256(file.read_bytes()).hexdigest()[:8]
        return f"{pathto(f'_static/exercises/{file.name}', 1)}?v={version}"

    return {
        "key": key,
        "seconds": SLOWER * exercise.seconds,
        "cells": found,
        "release": hashlib.sha256(json.dumps(found).encode()).hexdigest()[:8],
        "checks": {
            str(check.number): {"title": check.title, "hints": check.hints} for check in exercise.checks
        },
        "notebook": f"{docname.rpartition('/')[2]}.ipynb",
        "notebook_at": pathto(f"_sources/{docname}.ipynb", 1),
        "worker": static(Path(app.srcdir, "book", "_static", "exercises", WORKER)),
        "package": static(place / PACKAGE),
        "python": {
            "at": pathto("_static/exercises/pyodide/", 1) if bundled else pyodide_files.CDN,
            "bundled": bundled,
            "version": pyodide_files.VERSION,
            "files": {name: [file.bytes, file.integrity] for name, file in pyodide_files.FILES.items()},
        },
    }  # fmt: skip


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect it."""
    app.add_directive("exercise-list", ExerciseList)
    app.connect("builder-inited", prepare)
    app.connect("html-page-context", put_on_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
