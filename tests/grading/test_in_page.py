"""What the page's worker runs, without a browser: cells, what they print and raise, and verdicts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onelaunch.grading import in_page

RIGHT = "def captured_size(size, sizes):\n    return min((one for one in sizes if one >= size), default=None)"


def ask(do: str, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(in_page.step(json.dumps({"do": do, **more})))
    return answer


@pytest.fixture(autouse=True)
def begun() -> None:
    ask("begin")


def cell(source: str) -> dict[str, Any]:
    return ask("cell", name="captured_size", source=source)


def test_a_right_answer_passes_and_a_new_beginning_forgets_it():
    assert cell(RIGHT) == {"printed": "", "error": ""}
    assert ask("check", exercise="ex02", number=1)["status"] == "PASS"
    ask("begin")
    verdict = ask("check", exercise="ex02", number=1)
    assert verdict["status"] == "FAIL"
    assert "definition of captured_size" in verdict["expected"]
    assert len(verdict["hints"]) == 3


def test_a_cell_is_compiled_as_in_a_kernel_without_the_grader_s_own_future_imports():
    said = cell(
        "from dataclasses import dataclass\n\n@dataclass\nclass Buffer:\n    size: int\n\nprint(Buffer.__annotations__)"
    )
    assert said == {"printed": "{'size': <class 'int'>}\n", "error": ""}


def test_a_cell_that_changes_the_grader_changes_nothing():
    cell("from onelaunch.grading import base\nfrom onelaunch.grading.checks import ex02")
    cell("base.FAIL = 'PASS'\ndel ex02.exercise")
    assert ask("check", exercise="ex02", number=1)["status"] == "FAIL"


def test_what_a_cell_prints_is_shown_as_far_as_there_is_room():
    assert cell("import sys\nprint('a')\nprint('b', file=sys.stderr)")["printed"] == "a\nb\n"
    printed = cell("for _ in range(3):\n    print('x' * 9_999)")["printed"]
    assert printed.startswith("x" * 9_999 + "\n\n... and 20000 more characters")


@pytest.mark.parametrize("source", ["exit()", "raise KeyboardInterrupt", "raise BaseException('own')"])
def test_no_cell_ends_the_page_s_python(source):
    assert cell(source)["error"].splitlines()[-1].split(":")[0] in ("SystemExit", "KeyboardInterrupt", "BaseException")


def test_an_error_is_shown_in_the_learner_s_lines_alone():
    error = cell("import json\n\ndef own():\n    json.loads('{')\n\nown()")["error"]
    assert '"<captured_size>", line 6' in error
    assert "    json.loads('{')" in error
    assert "in_page" not in error
    assert "json/" not in error
    assert error.splitlines()[-1].startswith("json.decoder.JSONDecodeError")


def test_an_error_of_syntax_is_shown_with_its_line():
    error = cell("def own(:\n    pass")["error"]
    assert '"<captured_size>", line 1' in error
    assert "def own(:" in error


def test_another_request_is_refused():
    with pytest.raises(ValueError, match="asked for 'dance'"):
        ask("dance")
