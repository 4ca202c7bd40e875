"""``onelaunch check`` on files and functions that are not what it asks for, and its output whatever they print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onelaunch import cli

SOURCE = """
import atexit, os, subprocess, sys, time
from types import SimpleNamespace
import numpy as np
import torch

x = torch.zeros(3)
calls = []

def fill(i):
    x.fill_(i)

def double():
    return x * 2

def needs_an_argument(name):
    return fill, double

def three():
    return fill, double, 3

def generates():
    yield fill, double

async def awaits():
    return fill, double

def two_arguments_to_prepare():
    return lambda i, batch: None, double

def no_argument_to_prepare():
    return lambda: None, double

def an_argument_to_step():
    return fill, lambda batch: batch * 2

def lazy_step():
    def step():
        yield x * 2
    return fill, step

def awaited_step():
    async def step():
        return x * 2
    return fill, step

def step_of_nothing():
    return fill, lambda: None

def step_in_numpy():
    return fill, lambda: np.zeros(3) + 1

def writes_and_returns_nothing():
    out = torch.zeros(3)
    def step():
        out.copy_(x * 2)
    return fill, step

def on_meta():
    y = torch.zeros(3, device="meta")
    return lambda i: None, lambda: y * 2

def leaves():
    def step():
        sys.exit("enough")
    return fill, step

def asks():
    return fill, lambda: x * float(input("factor? "))

def two_things_the_matter():
    return {"prepare": fill, "step": double, "padding": lambda i: None}

def random_prepare():
    def prepare(i):
        x.copy_(torch.rand(3) * np.random.rand() * time.time())
    return prepare, double

def large_constant():
    state = SimpleNamespace(n=0)
    def prepare(i):
        state.n = i
    def step():
        return x + torch.full((200_000,), float(state.n))[:3] + torch.tensor(float(state.n))
    return prepare, step

def large():
    y = torch.zeros(4_000_000)
    def prepare(i):
        y[:3].fill_(i)
    return prepare, lambda: [y + n for n in range(4)]

def prints():
    print("as Python prints")
    os.write(1, b"as a library prints\\n")
    subprocess.run([sys.executable, "-c", "print('as a child prints')"])
    atexit.register(print, "as the end prints")
    def step():
        print("step")
        return x * 2
    return fill, step
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("unfriendly")
    (made / "mine.py").write_text(SOURCE, encoding="utf-8")
    (made / "a:b.py").write_text(SOURCE, encoding="utf-8")
    (made / "typo.py").write_text("import torch\n\ndef made(:\n    pass\n", encoding="utf-8")
    (made / "notes.txt").write_text("no Python\n", encoding="utf-8")
    (made / "latin.py").write_bytes(b"name = '\xe9'\n")
    package = made / "package" / "inner"
    package.mkdir(parents=True)
    (made / "package" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (made / "package" / "sizes.py").write_text("N = 3\n", encoding="utf-8")
    (package / "steps.py").write_text(
        "from ..sizes import N\nimport torch\nx = torch.zeros(N)\n\ndef made():\n"
        "    return lambda i: x.fill_(i), lambda: x * 2\n",
        encoding="utf-8",
    )
    return made


@pytest.fixture
def check(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "stdin", None)

    def run(*args: str) -> tuple[int, str, str]:
        status = cli.main(["check", *args])
        return status, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (".:made", "'.' is a folder: name a file in it"),
        ("notes.txt:made", "'notes.txt' is no Python file"),
        ("typo.py:made", "typo.py raised SyntaxError: invalid syntax (typo.py, line 3)"),
        ("latin.py:made", "latin.py raised SyntaxError"),
        ("mine.py:tripple", "has no function 'tripple'; there is fill, double, needs_an_argument"),
        ("mine.py:needs_an_argument", "is called without arguments: missing a required argument: 'name'"),
        ("mine.py:three", "returned tuple: return (prepare, step)"),
        ("mine.py:generates", "returned generator: return (prepare, step)"),
        ("mine.py:awaits", "returned coroutine: return (prepare, step)"),
        ("mine.py:two_arguments_to_prepare", "prepare is called with the number of the round; found prepare(i, batch)"),
        ("mine.py:no_argument_to_prepare", "prepare is called with the number of the round; found prepare()"),
        ("mine.py:an_argument_to_step", "step is called without arguments; found step(batch)"),
        ("mine.py:lazy_step", "step() returns a generator: to call it runs nothing of it"),
        ("mine.py:awaited_step", "step() returns a coroutine"),
        ("mine.py:step_of_nothing", "it runs no operation of PyTorch that computes something"),
        ("mine.py:step_in_numpy", "it runs no operation of PyTorch that computes something"),
        ("mine.py:on_meta", "it works on tensors of device 'meta'"),
        ("mine.py:leaves", "raised SystemExit at mine.py:"),
        ("mine.py:asks", "raised RuntimeError at mine.py:"),
        ("mine.py:two_things_the_matter", "padding must return views of tensors, in a list; found NoneType"),
    ],
)
def test_what_cannot_be_checked_says_why_in_one_line_and_in_json(check: Any, target: str, said: str) -> None:
    status, out, err = check(target)
    assert (status, out, len(err.splitlines())) == (2, "", 1), err
    assert err.startswith("onelaunch check: ")
    assert said in err
    status, out, _ = check(target, "--json")
    assert status == 2
    assert json.loads(out) == {"target": target, "error": err.removeprefix("onelaunch check: ").rstrip("\n")}


@pytest.mark.parametrize(
    "target", ["mine.py:writes_and_returns_nothing", "mine.py:random_prepare", "mine.py:large", "a:b.py:large"]
)
def test_what_is_unusual_and_right_gives_no_finding(check: Any, target: str) -> None:
    status, out, err = check(target)
    assert (status, out.partition(";")[0]) == (0, "nothing found"), err


def test_a_file_in_a_package_may_import_what_lies_around_it(check: Any) -> None:
    status, _, err = check("package/inner/steps.py:made")
    assert status == 0, err


def test_large_values_do_not_fill_the_report(check: Any) -> None:
    status, out, _ = check("mine.py:large_constant")
    assert status == 1
    assert max(map(len, out.splitlines())) < 400


def test_github_and_sarif_say_that_there_is_no_report(check: Any, folder: Path) -> None:
    status, out, _ = check("mine.py:three", "--github", "--sarif", "none.sarif")
    assert status == 2
    assert out.startswith("::error title=onelaunch check::mine.py:three returned tuple")
    (run,) = json.loads((folder / "none.sarif").read_text(encoding="utf-8"))["runs"]
    assert run["results"] == []
    assert not run["invocations"][0]["executionSuccessful"]
    assert "returned tuple" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_sarif_that_cannot_be_written_is_no_clean_check(check: Any) -> None:
    status, out, err = check("mine.py:writes_and_returns_nothing", "--json", "--sarif", ".")
    assert status == 2
    assert err == "onelaunch check: --sarif . cannot be written: Is a directory.\n"
    assert "error" in json.loads(out)


def test_json_is_all_of_stdout_whoever_prints(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "onelaunch", "check", "mine.py:prints", "--json"],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["findings"] == []
    for line in ("as Python prints", "as a library prints", "as a child prints", "as the end prints", "step"):
        assert line in done.stderr


def test_a_closed_stdin_and_stdout_do_not_matter(folder: Path) -> None:
    command = f'"{sys.executable}" -m onelaunch check mine.py:random_prepare --json <&- >&-'
    done = subprocess.run(command, shell=True, cwd=folder, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
