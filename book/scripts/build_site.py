"""Builds the site strictly and only when something changed: `python book/scripts/build_site.py`.

Jupyter Book alone would let three things pass. A second strict build over the page trees of a failed one exits 0, so
the trees are removed first. Its execution cache knows the notebooks but not `src/`, so the cache goes when the package
changes. And a notebook that fails only warns, so warnings are errors and `_config.yml` makes a failed cell raise.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import exercise_pages
import notebooks
import pyodide_files
from project import BUILD, ROOT, digest, repository, sources

SITE = BUILD / "html"
SITE_STAMP = BUILD / "site.stamp"  # hash of everything that the built site depends on
CODE_STAMP = BUILD / "code.stamp"  # hash of what the outputs of unchanged notebooks depend on
CODE = ("src", "requirements.txt")
INPUTS = (*CODE, "book", "notebooks", "exercises", "_config.yml", "_toc.yml", "pyproject.toml")


def main() -> int:
    """Build unless nothing changed. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--force", action="store_true", help="execute every chapter and build every page again")
    parser.add_argument("--linkcheck", action="store_true", help="check the links to other hosts instead of building")
    args = parser.parse_args()
    if args.linkcheck:
        return prepare() or sphinx("linkcheck")
    python = page_python()
    wanted = f"{hash_of(INPUTS)} {python}"
    if not args.force and SITE_STAMP.exists() and SITE_STAMP.read_text() == wanted and (SITE / "index.html").exists():
        print("book: nothing changed")
        return where()
    code = prepare()
    if code:
        return code
    SITE_STAMP.unlink(missing_ok=True)
    drop_stale_outputs(args.force)
    shutil.rmtree(SITE, ignore_errors=True)  # pages of chapters that are gone
    start = time.perf_counter()
    code = sphinx("html")
    if code or not (SITE / "index.html").exists():
        print(
            "\nERROR: the site was not built. The warnings and errors above say why; each of them counts.",
            file=sys.stderr,
        )
        return code or 1
    SITE_STAMP.write_text(f"{hash_of(INPUTS)} {python}")
    print(f"book: built in {time.perf_counter() - start:.0f} s")
    return where()


def hash_of(names: tuple[str, ...]) -> str:
    """One hash of these files and folders, and of the Python that runs them."""
    paths = [ROOT / name for name in names if (ROOT / name).exists()]
    return digest(paths, ROOT, salt=sys.version)


def page_python() -> str:
    """How the exercises' pages get Python: with the site, or from another host, and then a sentence says why."""
    if not exercise_pages.exercises(ROOT):
        return "none"
    try:
        pyodide_files.obtain()
    except pyodide_files.NotFetched as error:
        print(
            f"note: the site will carry no Python, because {error}.\n"
            "      The exercises' pages will load it from another host, and say so.",
            flush=True,
        )
        return "elsewhere"
    return "bundled"


def prepare() -> int:
    """What the chapters need before they are executed: the embedded model, and notebooks that exist."""
    if subprocess.run([sys.executable, "-m", "onelaunch.models.embedded"], cwd=ROOT).returncode:
        print("\nERROR: the chapters need the embedded model, see the message above.", file=sys.stderr)
        return 1
    missing = [source.stem for source in sources() if not source.with_suffix(".ipynb").exists()]
    if missing and notebooks.build(missing):
        return 1
    for source in sources():
        if notebooks.check_one(source, repository()):
            print(
                f"note: {source.stem}.ipynb is not what {source.name} builds; the site shows the .ipynb.\n"
                "      `make notebooks` builds it again and drops what was edited in the .ipynb.",
                flush=True,
            )
    return 0


def drop_stale_outputs(force: bool) -> None:
    """Remove the execution cache if the outputs in it may have come from other code."""
    code = hash_of(CODE)
    if force or not CODE_STAMP.exists() or CODE_STAMP.read_text() != code:
        shutil.rmtree(BUILD / ".jupyter_cache", ignore_errors=True)
    BUILD.mkdir(exist_ok=True)
    CODE_STAMP.write_text(code)


def sphinx(builder: str) -> int:
    """Run Jupyter Book strictly, on no trees of an earlier build. Returns its exit code."""
    shutil.rmtree(BUILD / ".doctrees", ignore_errors=True)
    jupyter_book = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    command = [*jupyter_book, "build", str(ROOT), "-W", "-n", "--keep-going", "--builder", builder]
    env = os.environ | {"PYTHONUNBUFFERED": "1", "ONELAUNCH_STATIC": "1"}  # a page has no kernel: no widgets in it
    lines = []
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode and (cell := failed_cell(lines)):
        print(f"\nThe cell that failed, once more without Sphinx around it:\n\n{cell}", flush=True)
    return process.returncode


def failed_cell(lines: list[str]) -> str:
    """The cell and its traceback out of the log of a build; empty if no cell failed."""
    rules = [at for at, line in enumerate(lines) if re.fullmatch(r"-{10,}", line.strip())]
    ends = [at for at, line in enumerate(lines) if line.startswith("The above exception") and rules and at > rules[0]]
    return "".join(lines[rules[0] : ends[0]]).rstrip() if ends else ""


def where() -> int:
    """Say where the site is."""
    index: Path = SITE / "index.html"
    print(f"      open {index}\n      or run `make serve` and open the address it prints")
    return 0


if __name__ == "__main__":
    sys.exit(main())
