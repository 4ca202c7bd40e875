"""The exercise pipeline: `build` makes the notebooks of exNN_name.py, `check` proves that they are what it builds.

python book/scripts/exercises.py build            without running anything
python book/scripts/exercises.py check            exit code 1 if a notebook on disk is not what its source builds

From one source three files: the solution (exercises/solutions), the learner's notebook beside the source, in which
each answer is cut to a stub, and the same once more as the pristine copy that `onelaunch grade` compares with. From all
of them a page of the book with the answers, each behind a fold.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from notebook_build import NotebookError, assemble, read_source, to_text
from notebook_lint import lint
from onelaunch.grading import checks
from project import ROOT, Repository, repository

SOURCES = ROOT / "exercises"
RELEASE = ROOT / "src" / "onelaunch" / "grading" / "release"
PAGE = ROOT / "book" / "solutions.md"
PAGE_HEAD = """<!-- Written by book/scripts/exercises.py from exercises/exNN_name.py. -->

# Solutions

One right answer for each cell, behind a fold. There are others: an answer is right if all checks pass.
"""
# From this comment to the end of its block is the answer. What stands behind a colon is put in its place.
MARK = re.compile(r"^( *)# ANSWER(?:: (.+))?$")
STUB = ("# Write your answer here, in place of the next line.", "raise NotImplementedError")


@dataclass(frozen=True)
class Built:
    """The notebooks of one exercise."""

    key: str
    solution: NotebookNode
    learner: NotebookNode


def sources() -> list[Path]:
    """The exercises' sources, in order."""
    return sorted(SOURCES.glob("ex[0-9][0-9]_*.py"))


def build_one(source: Path, site: Repository) -> Built:
    """Both notebooks of `source`. Raises NotebookError for what does not hold together."""
    key = source.stem[:4]
    solution, learner = (assemble(source, site) for _ in range(2))
    problems = [*lint(solution, source), *check_cells(solution, key)]
    for whole, cut in zip(solution.cells, learner.cells, strict=True):
        name = answer_of(whole)
        if name:
            whole.id = cut.id = f"answer-{name.replace('_', '-')}"
            whole.source, cut.source = without_marks(whole.source), stub(cut.source)
            if whole.source == cut.source:
                problems.append(f"cell {whole.id} has no line '# ANSWER': nothing of it would be cut")
        elif MARK.search(whole.source):
            problems.append(f"cell {whole.id} has a line '# ANSWER' but no tag 'answer:NAME'")
    if problems:
        raise NotebookError("\n  ".join([f"{source.name} is not fit to be built:", *problems]))
    for cell in solution.cells:
        if cell.id == "open-in-colab":
            cell.source = cell.source.replace("exercises/", "exercises/solutions/")
        elif cell.cell_type == "markdown":
            cell.source = cell.source.replace("](../", "](../../")  # it lies one folder deeper
    for book in (solution, learner):
        nbformat.validate(book)
    return Built(key, solution, learner)


def answer_of(cell: NotebookNode) -> str:
    """NAME of a cell tagged `answer:NAME`; empty for another cell."""
    return next((tag[7:] for tag in cell.metadata.get("tags", []) if tag.startswith("answer:")), "")


def check_cells(book: NotebookNode, key: str) -> Iterator[str]:
    """What is wrong with the cells that call a check: each check of the exercise has one, in order."""
    found = []
    for cell in book.cells:
        tag = next((tag for tag in cell.metadata.get("tags", []) if tag.startswith("check:")), None)
        if tag is not None:
            number = tag.removeprefix("check:")
            found.append(number)
            if cell.source.strip() != f'check("{key}", {number})':
                yield f'the cell tagged {tag!r} must be check("{key}", {number}); found {cell.source!r}'
        elif cell.cell_type == "code" and re.search(r"^check\(", cell.source, flags=re.MULTILINE):
            yield f"cell {cell.id} calls check but has no tag 'check:N'"
    wanted = [str(check.number) for check in checks.load(key).checks]
    if found != wanted:
        yield f"checks/{key}.py has the checks {', '.join(wanted)}; the source has cells for {', '.join(found)}"


def stub(source: str) -> str:
    """An answer cell with its answers cut: from each mark on, as far as its block goes."""
    lines: list[str] = []
    cutting: int | None = None
    for line in source.splitlines():
        mark = MARK.match(line)
        if mark:
            cutting = len(mark[1])
            lines += [mark[1] + text for text in ([mark[2]] if mark[2] else STUB)]
        elif cutting is not None and (not line.strip() or len(line) - len(line.lstrip()) >= cutting):
            continue
        else:
            if cutting is not None and lines and line.strip():
                lines += [""] if line.startswith((" ", "\t")) else ["", ""]
            cutting = None
            lines.append(line)
    return "\n".join(lines)


def without_marks(source: str) -> str:
    """An answer cell as the solution shows it."""
    return "\n".join(line for line in source.splitlines() if not MARK.match(line))


def cells_of(source: Path) -> list[NotebookNode]:
    """The cells of an alternative or a mutant: a Markdown cell about it, and the answer cells that it replaces."""
    return [cell for cell in read_source(source).cells if cell.source.strip()]


def files(built: Built, source: Path) -> dict[Path, str]:
    """What is to be on disk for an exercise."""
    learner = to_text(built.learner)
    return {
        source.with_suffix(".ipynb"): learner,
        RELEASE / f"{source.stem}.ipynb": learner,
        SOURCES / "solutions" / f"{source.stem}.ipynb": to_text(built.solution),
    }


def page(solutions: dict[Path, NotebookNode]) -> str:
    """The book's page of answers: source -> solution."""
    parts = [PAGE_HEAD]
    for source, book in solutions.items():
        title = book.cells[0].source.splitlines()[0].removeprefix("# ")
        parts.append(f"## {title}\n")
        for cell in book.cells:
            name = answer_of(cell)
            if name:
                parts.append(f"<details>\n<summary><code>{name}</code></summary>\n")
                parts.append(f"```python\n{cell.source}\n```\n\n</details>\n")
        parts.append(f"The whole notebook: `exercises/solutions/{source.stem}.ipynb`.\n")
    return "\n".join(parts)


def differences(solution: NotebookNode, learner: NotebookNode) -> list[str]:
    """Where a learner's notebook differs from the solution, answer cells aside. (Its links lead one folder less up.)"""

    def rest(book: NotebookNode) -> list[tuple[str, str, str, tuple[str, ...]]]:
        own = [cell for cell in book.cells if cell.id != "open-in-colab"]
        return [
            (
                cell.id,
                cell.cell_type,
                "" if answer_of(cell) else cell.source.replace("](../../", "](../"),
                tuple(cell.metadata.get("tags", [])),
            )
            for cell in own
        ]

    one, other = rest(solution), rest(learner)
    if len(one) != len(other):
        return [f"{len(one)} cells and {len(other)}"]
    return [f"cell {a[0]}" for a, b in zip(one, other, strict=True) if a != b]


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["build", "check"])
    command = parser.parse_args().command
    site, problems = repository(), []
    wanted: dict[Path, str] = {}
    solutions: dict[Path, NotebookNode] = {}
    for source in sources():
        try:
            built = build_one(source, site)
        except (NotebookError, ValueError) as error:
            problems.append(str(error))
        else:
            wanted |= files(built, source)
            solutions[source] = built.solution
    there = {path for folder in {path.parent for path in wanted} for path in folder.glob("ex*.ipynb")}
    wanted[PAGE] = page(solutions)
    left_over = sorted(there - set(wanted))
    changed = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if command == "build" and not problems:
        for path in left_over:
            path.unlink()
        for path in changed:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
        print(f"exercises: {len(sources())}, of their {len(wanted)} files {len(changed)} are new")
        return 0
    if command == "check":
        problems += [f"{path.relative_to(ROOT)} is not what its source builds" for path in [*changed, *left_over]]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print("Edit exercises/exNN_name.py, never the .ipynb, then run `make exercises`.", file=sys.stderr)
        return 1
    print(f"exercises: the notebooks of {len(sources())} are what their sources build")
    return 0


if __name__ == "__main__":
    sys.exit(main())
