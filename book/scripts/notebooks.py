"""The notebook pipeline: `build` makes NN_name.ipynb from NN_name.py, `check` proves they agree, `test` runs them.

python book/scripts/notebooks.py build            what changed since the last build
python book/scripts/notebooks.py build 02 --force
python book/scripts/notebooks.py check            without running anything; exit code 1 and a diff if one differs
python book/scripts/notebooks.py test             every notebook under nbval, from an empty folder
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

import elsewhere
import nbval_run
from notebook_build import NotebookError, assemble, execute, keep_checked_outputs, output_problems, to_text
from notebook_lint import lint
from project import BUILD, ROOT, SOURCES, Repository, digest, repository, sources

STAMPS = BUILD / "notebooks.json"
DIFF_LINES = 60  # of one notebook; beyond that the news is that they differ


def build(names: Sequence[str] = (), force: bool = False) -> int:
    """Build and execute the notebooks that are out of date. Returns the exit code."""
    site = repository()
    stamps = json.loads(STAMPS.read_text()) if STAMPS.exists() else {}
    code, todo = 0, []
    for source in sources(names):
        target = source.with_suffix(".ipynb")
        if force or not target.exists() or stamps.get(source.stem) != _stamp(source, target):
            todo.append(source)
    for at, source in enumerate(todo, start=1):
        target = source.with_suffix(".ipynb")
        print(f"[{at}/{len(todo)}] {target.relative_to(ROOT)} ...", end=" ", flush=True)
        start = time.perf_counter()
        try:
            target.write_text(to_text(build_one(source, site)), encoding="utf-8")
        except NotebookError as error:
            print(f"FAILED\n{source.relative_to(ROOT)}: {error}", file=sys.stderr)
            code = 1
            continue
        print(f"{time.perf_counter() - start:.1f} s", flush=True)
        stamps[source.stem] = _stamp(source, target)
        BUILD.mkdir(exist_ok=True)
        STAMPS.write_text(json.dumps(stamps, indent=1, sort_keys=True))
    if not todo:
        print("notebooks: nothing changed")
    return code


def build_one(source: Path, site: Repository, root: Path = ROOT) -> NotebookNode:
    """The executed notebook of one source, with checked text outputs only. Raises NotebookError."""
    book = assemble(source, site, root)
    problems = lint(book, source)
    if problems:
        raise NotebookError("\n  ".join(["not fit to be built:", *problems]))
    execute(book, source.parent)
    keep_checked_outputs(book)
    problems = output_problems(book)
    if problems:
        raise NotebookError("\n  ".join(["its outputs cannot be kept:", *problems]))
    return book


def _stamp(source: Path, target: Path) -> str:
    return digest([source, target, ROOT / "src", ROOT / "book" / "scripts", ROOT / "_config.yml"])


def check(names: Sequence[str] = ()) -> int:
    """Prove, without running anything, that each notebook is what its source builds. Returns the exit code."""
    site = repository()
    problems = []
    chosen = sources(names)
    for source in chosen:
        problems += [f"{source.relative_to(ROOT)}: {problem}" for problem in check_one(source, site)]
    if not names:
        for folder in SOURCES:
            for path in sorted((ROOT / folder).glob("*.ipynb")):
                if path.with_suffix(".py") not in chosen:
                    problems.append(f"{path.relative_to(ROOT)}: has no source, {path.stem}.py is missing")
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(
            "\nEdit the .py, never the .ipynb, then run `make notebooks`. (Running a notebook and saving it changes\n"
            "it too: to keep such edits, copy the notebook elsewhere first.)",
            file=sys.stderr,
        )
        return 1
    print(f"notebooks: {len(chosen)} are what their sources build")
    return 0


def check_one(source: Path, site: Repository, root: Path = ROOT) -> list[str]:
    """How the notebook beside `source` differs from what `source` builds, stored outputs aside (nbval proves those)."""
    try:
        wanted = assemble(source, site, root)
    except NotebookError as error:
        return [str(error)]
    problems = lint(wanted, source)
    target = source.with_suffix(".ipynb")
    if not target.exists():
        return [*problems, f"{target.name} is missing"]
    try:
        found = nbformat.reads(target.read_text(encoding="utf-8"), as_version=nbformat.NO_CONVERT)
        nbformat.validate(found)
    except Exception as error:  # nbformat raises many kinds
        return [*problems, f"{target.name} is not a valid notebook: {error}"]
    diff = list(
        difflib.unified_diff(
            describe(wanted), describe(found), f"{source.name} builds", f"{target.name} holds", lineterm="", n=2
        )
    )
    if diff:
        more = [f"... and {len(diff) - DIFF_LINES} lines more"] if len(diff) > DIFF_LINES else []
        return [*problems, "\n".join(["the notebook is not what it builds:", *diff[:DIFF_LINES], *more])]
    problems += [f"{target.name}: {problem}" for problem in output_problems(found)]
    kept = nbformat.from_dict(found)
    keep_checked_outputs(kept)
    if not problems and to_text(kept) != target.read_text(encoding="utf-8"):
        problems.append(f"{target.name} was written by another program (order of keys, or leftovers in an output)")
    return problems


def describe(book: NotebookNode) -> list[str]:
    """A notebook as lines for a diff, without its outputs: everything else that is in the file, in readable form."""
    version = f"nbformat {book.get('nbformat')}.{book.get('nbformat_minor')}"
    lines = [f"{version} {json.dumps(book.metadata, sort_keys=True)}"]
    for cell in book.cells:
        count = f" [{cell.execution_count}]" if cell.cell_type == "code" else ""
        rest = {key: value for key, value in cell.items() if key not in ("id", "cell_type", "source", "outputs")}
        rest.pop("execution_count", None)
        lines.append(f"--- {cell.get('id')} {cell.cell_type}{count} {json.dumps(rest, sort_keys=True)}")
        lines += cell.source.splitlines()
    return lines


def run_under_nbval(names: Sequence[str] = (), cell_timeout_s: float | None = None) -> int:
    """Run the notebooks under nbval, each with nothing but itself: an empty folder, a Python that lacks onelaunch until
    the first cell has fetched it, as on Colab. Returns the exit code."""
    targets = [source.with_suffix(".ipynb") for source in sources(names)]
    missing = [path.name for path in targets if not path.exists()]
    if missing:
        print(f"not built yet: {', '.join(missing)}. Run `make notebooks` first.", file=sys.stderr)
        return 1
    limit = {} if cell_timeout_s is None else {"cell_timeout_s": cell_timeout_s}
    with tempfile.TemporaryDirectory() as folder:
        problems = nbval_run.run(targets, ROOT, **limit, where=elsewhere.make(Path(folder)))
    for problem in problems:
        print(f"nbval: {problem}", file=sys.stderr)
    return 1 if problems else 0


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["build", "check", "test"])
    parser.add_argument("names", nargs="*", help="chapters by the start of their name (02, 02_a_small); all if none")
    parser.add_argument("--force", action="store_true", help="build: also what did not change")
    parser.add_argument("--cell-timeout", type=float, metavar="S", help="test: seconds that one cell may take")
    args = parser.parse_intermixed_args()
    try:
        if args.command == "build":
            return build(args.names, args.force)
        if args.command == "check":
            return check(args.names)
        return run_under_nbval(args.names, args.cell_timeout)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
