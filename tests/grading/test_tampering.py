"""Notebooks that a learner broke, by accident or to look better, are scored by what their answers do.

What is outside the answer cells cannot count, because the notebook that runs does not hold it. What an answer does to
the process that judges it is tried in a real kernel.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from variants import built

from onelaunch.grading import session
from onelaunch.grading.base import FAIL, NOT_STARTED, PASS
from onelaunch.grading.submission import assemble

Book = dict[str, Any]
STUB = {cell.id: cell.source for cell in built("ex02").learner.cells}


def notebook(which: str = "solution") -> Book:
    """The exercise as a plain dict: its solution or the learner's copy."""
    made: Book = json.loads(nbformat.writes(getattr(built("ex02"), which)))
    return made


def cells(book: Book, tag: str) -> list[Book]:
    return [cell for cell in book["cells"] if any(t.startswith(tag) for t in cell["metadata"].get("tags", []))]


def answered(**answers: str) -> Book:
    """The solution with these answer cells in place of its own."""
    book = notebook()
    for name, source in answers.items():
        (cell,) = cells(book, f"answer:{name}")
        cell["source"] = source
    return book


def without_checks(book: Book) -> None:
    book["cells"] = [cell for cell in book["cells"] if cell not in cells(book, "check:")]


def checks_that_print(book: Book) -> None:
    for cell in cells(book, "check:"):
        cell["source"] = "print('PASS')"


def checks_skipped(book: Book) -> None:
    for cell in cells(book, "check:"):
        cell["metadata"]["tags"] = ["nbval-skip"]
        cell["source"] = ["# NBVAL_SKIP\n", *cell["source"]]


def checks_as_text(book: Book) -> None:
    for cell in cells(book, "check:"):
        cell["cell_type"] = "markdown"


def passes_in_the_outputs(book: Book) -> None:
    for cell in cells(book, "check:"):
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "PASS"}]
        cell["execution_count"] = None


def another_check(book: Book) -> None:
    book["cells"].insert(3, {"cell_type": "code", "metadata": {}, "source": "check = print", "outputs": []})


def upside_down(book: Book) -> None:
    book["cells"].reverse()


def tags_lost(book: Book) -> None:
    for cell in book["cells"]:
        cell["metadata"] = {"id": cell.pop("id")}  # as Colab writes ids


def other_metadata(book: Book) -> None:
    book["metadata"] = {"kernelspec": {"name": "julia", "language": "julia"}}


@pytest.mark.parametrize(
    "tamper",
    [
        without_checks, checks_that_print, checks_skipped, checks_as_text, passes_in_the_outputs, another_check,
        upside_down, tags_lost, other_metadata,
    ],
)  # fmt: skip
def test_what_runs_is_the_pristine_notebook_with_the_answers(tamper: Callable[[Book], None]) -> None:
    def runs(book: Book) -> list[tuple[str, str, str]]:
        made = assemble(book, "ex02_mine.ipynb", Path("/nowhere"))
        return [(cell["id"], cell["role"], "" if "seal" in cell else cell["source"]) for cell in made.cells]

    book = notebook()
    tampered = copy.deepcopy(book)
    tamper(tampered)
    assert runs(tampered) == runs(book)
    assert sum(role.startswith("check:") for _, role, _ in runs(tampered)) == 6


ONLY_STUBS = [NOT_STARTED] * 6
PAD = "def pad_batch(reqs, sizes, dummy):\n"
FIRST_THREE = [PASS] * 3 + [FAIL] * 3


@pytest.mark.parametrize(
    ("answers", "statuses"),
    [
        pytest.param({}, [PASS] * 6, id="nothing broken"),
        pytest.param(
            {
                "captured_size": "check = grade = lambda *args: print('PASS ex02.1 the smallest size')\n"
                + STUB["answer-captured-size"],
                "pad_batch": "print('PASS ex02.4 the requests first, in their order, then dummies')\n"
                + STUB["answer-pad-batch"],
                "run_padded": "import onelaunch.grading.base as base, onelaunch.grading.checks.ex02 as ex02\n"
                "import onelaunch.grading\n"
                "onelaunch.grading.check = print\n"
                "base.Exercise.judge = lambda self, number, *_: base.Verdict('ex02', number, 'x', 'PASS')\n"
                "ex02.exercise.checks[5] = ex02.exercise.checks[0]\n" + STUB["answer-run-padded"],
            },
            ONLY_STUBS,
            id="PASS printed, checks replaced",
        ),
        pytest.param({"pad_batch": PAD + "    import os; os._exit(0)"}, FIRST_THREE, id="kernel ended in an answer"),
        pytest.param({"pad_batch": "import os; os._exit(0)"}, FIRST_THREE, id="kernel ended in a cell"),
        pytest.param({"pad_batch": PAD + "    while True: pass"}, FIRST_THREE, id="endless loop"),
        pytest.param({"pad_batch": "while True: print('busy' * 100)"}, FIRST_THREE, id="endless loop in a cell"),
        pytest.param(
            {"run_padded": "def run_padded(*args):\n  while True:\n    try:\n      while True: pass\n    except: pass"},
            [PASS] * 5 + [FAIL],
            id="endless loop that cannot be stopped",
        ),
        pytest.param({"pad_batch": PAD + "    import sys; sys.exit(0)"}, FIRST_THREE, id="exit"),
        pytest.param({"pad_batch": PAD + "    raise KeyboardInterrupt"}, FIRST_THREE, id="interrupt"),
        pytest.param({"pad_batch": PAD + "    return eval(input())"}, FIRST_THREE, id="input"),
        pytest.param({"pad_batch": PAD + "    return [reqs"}, FIRST_THREE, id="syntax error"),
        pytest.param({"pad_batch": "# NBVAL_SKIP\n" + STUB["answer-pad-batch"]}, FIRST_THREE, id="skipped"),
        pytest.param({"pad_batch": PAD + "    return bytearray(1 << 35)"}, FIRST_THREE, id="too much memory"),
        pytest.param(
            {
                "pad_batch": "class Any:\n    def __eq__(self, other): return True\n"
                "    def __len__(self): return 4\n" + PAD + "    return Any()"
            },
            FIRST_THREE,
            id="equal to everything",
        ),
        pytest.param(
            {
                "captured_size": "import os, sys, io\nos.chdir('/')\nsys.stdout = sys.stderr = io.StringIO()\n"
                "sum = len = list = min = print = None\n"
                "def captured_size(size, sizes):\n    return next((s for s in sorted(sizes) if s >= size), None)",
                "pad_batch": PAD + "    for _ in range(1000):\n        __builtins__.print('x' * 1000)\n"
                "    n = captured_size(reqs.__len__(), sizes) or reqs.__len__()\n"
                "    return reqs + [dummy] * (n - reqs.__len__())",
                "run_padded": "def run_padded(step, reqs, sizes, dummy):\n"
                "    return step(pad_batch(reqs, sizes, dummy))[: reqs.__len__()]",
            },
            [PASS] * 6,
            id="right, in a mess",
        ),
    ],
)
def test_an_answer_is_scored_by_what_it_returns(answers: dict[str, str], statuses: list[str], tmp_path: Path) -> None:
    path = tmp_path / "ex02_mine.ipynb"
    path.write_text(json.dumps(answered(**answers)))
    result = session.grade(path, seconds=1.5)
    # a stub that is skipped was not started, and what needs it neither
    found = [FAIL if v.status == NOT_STARTED and statuses != ONLY_STUBS else v.status for v in result.verdicts]
    assert found == statuses, "\n".join([*result.notes, *(verdict.text() for verdict in result.verdicts)])
