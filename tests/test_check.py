"""``onelaunch check``, called as a CI calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onelaunch import cli

SOURCE = """
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
import torch

def right():
    x = torch.zeros(3)
    return lambda i: x.fill_(i), lambda: x * 2

def wrong():
    print("made by wrong()")
    state = SimpleNamespace(x=torch.zeros(3))
    def prepare(i):
        state.x = torch.full((3,), float(i))
    def step():
        return state.x * 2  # here
    return {"prepare": prepare, "step": step, "owners": state}

@dataclass
class Check:
    prepare: Any
    step: Any
    padding: Any = None
    rounds: int = 2

def padded():
    x = torch.zeros(4, 2)
    return Check(lambda i: x[:2].fill_(i), lambda: x - x.sum(0), lambda i: [x[2:]])

def raises():
    raise OSError("no such cache")

def number():
    return 7

def extra():
    return {"prepare": print, "step": print, "rows": 3}

NO_FUNCTION = 3
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mine") / "my steps.py"
    path.write_text(SOURCE, encoding="utf-8")
    (path.parent / "broken.py").write_text("import nowhere_to_be_found\n", encoding="utf-8")
    return path


def check(file: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "onelaunch", "check", *args],
        capture_output=True,
        text=True,
        cwd=file.parent,
        timeout=120,
    )


LINE = next(n for n, line in enumerate(SOURCE.splitlines(), 1) if "# here" in line)


def test_a_right_step_exits_with_0(file: Path) -> None:
    done = check(file, "my steps.py:right")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "nothing found; 3 replays of 1 kernel beside eager\n"


def test_a_wrong_step_exits_with_1_and_json_is_all_that_is_printed(file: Path) -> None:
    done = check(file, "my steps.py:wrong", "--json", "--rounds", "1", "--sarif", "found.sarif")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["rounds"] == 1
    (finding,) = report["findings"]
    assert (finding["kind"], finding["tensor"], finding["where"]["line"]) == ("moved-address", "x", LINE)
    assert "made by wrong()" in done.stderr

    sarif: Any = json.loads((file.parent / "found.sarif").read_text(encoding="utf-8"))
    assert sarif["version"] == "2.1.0"
    (run,) = sarif["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "moved-address"
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "my%20steps.py"}, "region": {"startLine": LINE}}


def test_github_shows_the_line_of_a_pull_request(file: Path) -> None:
    done = check(file, "my steps.py:wrong", "--github")
    assert done.returncode == 1, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"::error file=my steps.py,line={LINE},title=moved-address x::x lies elsewhere")
    assert "%0AFix: " in line


def test_a_dataclass_may_say_where_padding_is(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(file.parent)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert cli.main(["check", "my steps.py:padded"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("1 finding; 2 replays")
    assert "padding-leak x at my steps.py:" in printed


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("nowhere.py:f",), "there is no file 'nowhere.py'"),
        (("my steps.py",), "'my steps.py' is no path.py:function"),
        (("my steps.py:missing",), "has no function 'missing'; there is"),
        (("my steps.py:NO_FUNCTION",), "has no function 'NO_FUNCTION'"),
        (("my steps.py:number",), "my steps.py:number returned int: return (prepare, step)"),
        (("my steps.py:extra",), "returned the unknown key 'rows'"),
        (("my steps.py:raises",), "my steps.py:raises raised OSError at my steps.py:"),
        (("broken.py:f",), "broken.py raised ModuleNotFoundError at broken.py:1: No module named"),
        (("my steps.py:right", "--rounds", "0"), "rounds must be a number of replays, at least 1; found 0"),
        (("my steps.py:right", "--sarif", "no/such/folder.sarif"), "--sarif no/such/folder.sarif cannot be written"),
    ],
)
def test_what_cannot_be_checked_exits_with_2_and_one_sentence(
    file: Path,
    args: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(file.parent)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert cli.main(["check", *args]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("onelaunch check: ")
    assert said in printed.err
    assert len(printed.err.splitlines()) == 1
    assert printed.out == ""
