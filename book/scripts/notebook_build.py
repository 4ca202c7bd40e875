"""From a chapter's source to its notebook: NN_name.py (py:percent, the truth) becomes NN_name.ipynb.

The notebook holds what a reader needs and nothing that differs between two machines: cells with stable ids, a link to
Colab, one first cell that makes `onelaunch` importable anywhere, and the text outputs of the cells that are checked.
All that is timed or drawn is left out, because it is made again when the book is built.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from project import ROOT, Repository

CHECKED = "nbval-check-output"
CELL_TIMEOUT_S = 300
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}

# The first code cell of every notebook. A torch that is installed fits its machine: the constraint holds pip to it.
BOOTSTRAP = """\
# Makes `onelaunch` importable. Where the book is installed this does nothing; elsewhere (Colab, an empty folder)
# pip fetches the package, and a torch that is installed stays as it is.
import importlib
import importlib.metadata
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

if importlib.util.find_spec("onelaunch") is None:
    source = os.environ.get("ONELAUNCH_SOURCE") or "{pip}"
    torch_here = next(iter(importlib.metadata.distributions(name="torch")), None)
    with tempfile.TemporaryDirectory() as folder:
        keep = pathlib.Path(folder, "keep.txt")
        keep.write_text(f"torch=={{torch_here.version}}\\n" if torch_here else "")
        pip = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--constraint", keep, source])
    if pip.returncode:
        raise RuntimeError(f"pip could not install onelaunch from {{source}}: mend what it says above, run again.")
    importlib.invalidate_caches()

import onelaunch"""


class NotebookError(Exception):
    """A notebook that cannot be built as asked; the message says which cell and what to do."""


def read_source(source: Path) -> NotebookNode:
    """The cells of a py:percent file as the author wrote them, `id` and `tags` still in the metadata."""
    return jupytext.read(source, fmt="py:percent")


def assemble(source: Path, site: Repository, root: Path = ROOT) -> NotebookNode:
    """The notebook that `source` builds, not executed.

    A cell's id is the `id` given in its header (`# %% id="warm-up"`) or else a hash of its text, so an edit to one cell
    changes no other's. The link to Colab and the bootstrap cell go in after the title.
    """
    written = read_source(source).cells
    if not written or written[0].cell_type != "markdown" or not written[0].source.startswith("# "):
        raise NotebookError(f"{source}: the first cell must be Markdown that starts with the title ('# ...').")
    path = source.relative_to(root).with_suffix(".ipynb").as_posix()
    link = nbformat.v4.new_markdown_cell(f"[Open this notebook in Colab]({site.colab(path)})", id="open-in-colab")
    first = nbformat.v4.new_code_cell(BOOTSTRAP.format(pip=site.pip), id="bootstrap")
    first.metadata["tags"] = ["bootstrap", "hide-cell"]

    cells, taken = [], {link.id, first.id}
    for cell in written:
        make = nbformat.v4.new_code_cell if cell.cell_type == "code" else nbformat.v4.new_markdown_cell
        new = make(cell.source, id=_cell_id(cell, taken, source))
        if cell.metadata.get("tags"):
            new.metadata["tags"] = list(cell.metadata["tags"])
        cells.append(new)
    cells[1:1] = [link, first]
    book = nbformat.v4.new_notebook(cells=cells, metadata=METADATA)
    number_code_cells(book)
    nbformat.validate(book)
    return book


def _cell_id(cell: NotebookNode, taken: set[str], source: Path) -> str:
    named = cell.metadata.get("id")
    if named is not None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", named) or named in taken:
            raise NotebookError(f"{source}: the cell id {named!r} is taken or not lower-case words joined by hyphens.")
        taken.add(named)
        return named
    base = f"{cell.cell_type}-{hashlib.sha256(cell.source.encode()).hexdigest()[:8]}"
    name, copy = base, 2
    while name in taken:  # two cells with the same text
        name, copy = f"{base}-{copy}", copy + 1
    taken.add(name)
    return name


def number_code_cells(book: NotebookNode) -> None:
    """Set execution counts as a run from top to bottom does: nbval never compares a cell that has none."""
    for count, cell in enumerate((cell for cell in book.cells if cell.cell_type == "code"), start=1):
        cell.execution_count = count


def execute(book: NotebookNode, folder: Path) -> None:
    """Run all cells in a fresh kernel that starts in `folder`; outputs are stored in `book`. Raises NotebookError."""
    client = NotebookClient(
        book, timeout=CELL_TIMEOUT_S, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise NotebookError(f"a cell failed:\n{error}") from error
    except CellTimeoutError as error:
        raise NotebookError(f"a cell ran for more than {CELL_TIMEOUT_S} s: make its work smaller.\n{error}") from error
    except DeadKernelError as error:
        raise NotebookError("the kernel died while a cell ran (out of memory, or a crash in native code).") from error


def keep_checked_outputs(book: NotebookNode) -> None:
    """Drop every output but the text of the cells tagged nbval-check-output, and all that a run leaves in metadata."""
    book.metadata = nbformat.from_dict(METADATA)
    for cell in book.cells:
        cell.metadata = nbformat.from_dict({k: v for k, v in cell.metadata.items() if k == "tags"})
        if cell.cell_type == "code":
            cell.outputs = joined([_plain(output) for output in cell.outputs]) if is_checked(cell) else []
    number_code_cells(book)
    for output in (output for cell in book.cells for output in cell.get("outputs", [])):
        if output.output_type == "execute_result":
            output.execution_count = None


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs with what was printed in one piece: how a kernel cuts it into messages depends on the time it took."""
    result: list[NotebookNode] = []
    for output in outputs:
        last = result[-1] if result else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            result.append(output)
    return result


def is_checked(cell: NotebookNode) -> bool:
    """Whether nbval compares what this cell prints."""
    return CHECKED in cell.metadata.get("tags", [])


def _plain(output: NotebookNode) -> NotebookNode:
    """An output as stored. The traceback of an expected error holds paths and colours: only its last line is kept."""
    if output.output_type == "error":
        return nbformat.v4.new_output(
            "error", ename=output.ename, evalue=output.evalue, traceback=[f"{output.ename}: {output.evalue}"]
        )
    if output.output_type == "stream":
        return nbformat.v4.new_output("stream", name=output.name, text=output.text)
    return nbformat.v4.new_output(output.output_type, data=dict(output.data))


def output_problems(book: NotebookNode) -> list[str]:
    """What is wrong with the stored outputs: they must be there for checked cells alone, be text, and be repeatable."""
    problems = []
    for cell in (cell for cell in book.cells if cell.cell_type == "code"):
        where = f"cell {cell.id}"
        if not is_checked(cell):
            if cell.outputs:
                problems.append(f"{where} holds outputs but has no tag {CHECKED!r}")
            continue
        if not cell.outputs:
            problems.append(f"{where} is tagged {CHECKED!r} but prints nothing, so nothing is checked")
        for output in cell.outputs:
            if output.output_type == "stream" and output.name != "stdout":
                problems.append(f"{where} is checked but writes to {output.name}, which differs from run to run")
            extra = sorted(set(output.get("data", {})) - {"text/plain"})
            if extra:
                problems.append(f"{where} is checked but shows {', '.join(extra)}: print text, draw in another cell")
            text = output.get("text", "") or output.get("data", {}).get("text/plain", "") or output.get("evalue", "")
            if re.search(r"\b0x[0-9a-f]{6,}", text):
                problems.append(f"{where} is checked but prints a memory address, which differs from run to run")
    return problems


def to_text(book: NotebookNode) -> str:
    """The file's contents."""
    return nbformat.writes(book, version=4).rstrip("\n") + "\n"
