"""``onelaunch grade`` and ``onelaunch exercises`` as a shell sees them: what they print, write and exit with."""

from __future__ import annotations

import csv
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from onelaunch.cli import main
from onelaunch.grading import checks, classroom, command, session
from onelaunch.grading.base import FAIL, NOT_STARTED, OUR_FAULT, PASS, Verdict
from onelaunch.grading.session import Result
from onelaunch.grading.submission import CannotGrade
from project import ROOT

EXERCISE = ROOT / "exercises" / "ex02_pad_a_batch.ipynb"
SOLUTION = ROOT / "exercises" / "solutions" / "ex02_pad_a_batch.ipynb"


def judged(path: Path, *statuses: str) -> Result:
    exercise = checks.load("ex02")
    verdicts = [Verdict("ex02", at, f"check {at}", status) for at, status in enumerate(statuses, start=1)]
    return Result(str(path), exercise, verdicts, seconds=1.0)


@pytest.fixture
def grades(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let grading give this: ``grades({file name: statuses, or an error to be raised})``."""

    def set_to(known: dict[str, tuple[str, ...] | Exception]) -> None:
        def grade(path: Path, seconds: float | None = None) -> Result:
            found = known[path.name]
            if isinstance(found, Exception):
                raise found
            return judged(path, *found)

        monkeypatch.setattr(session, "grade", grade)

    return set_to


def test_a_stub_is_partial_and_a_solution_is_all_and_both_can_be_read_by_programs(tmp_path, capsys):
    assert main(["grade", str(SOLUTION), "--json", "--junit", str(tmp_path / "out.xml")]) == command.ALL
    (result,) = json.loads(capsys.readouterr().out)
    assert (result["exercise"], result["score"], result["of"]) == ("ex02", 6, 6)
    suite = next(ElementTree.parse(tmp_path / "out.xml").iter("testsuite"))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("6", "0", "0")
    assert main(["grade", str(EXERCISE), "--hint", "3"]) == command.PARTIAL
    said = capsys.readouterr().out
    assert "NOT STARTED ex02.1" in said
    assert "hint 3:" in said
    assert "score: 0 of 6" in said


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ((PASS, PASS), command.ALL),
        ((PASS, FAIL), command.PARTIAL),
        ((NOT_STARTED,), command.PARTIAL),
        ((PASS, OUR_FAULT), command.CANNOT),
        (CannotGrade("no notebook"), command.CANNOT),
    ],
)
def test_the_exit_status_says_all_partial_or_cannot(grades, statuses, status, capsys):
    grades({"one.ipynb": statuses})
    assert main(["grade", "one.ipynb"]) == status


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["--watch"],
        ["a.ipynb", "--csv", "x.csv"],
        ["a.ipynb", "b.ipynb", "--watch"],
        ["a.ipynb", "--watch", "--json"],
        ["a.ipynb", "--class", "."],
        ["--class", ".", "--json"],
        ["a.ipynb", "--seconds", "0"],
        ["a.ipynb", "--hint", "4"],
    ],
)
def test_options_that_do_not_fit_together_are_refused_with_a_usage(wrong, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["grade", *wrong])
    assert ended.value.code == 2
    assert "usage: onelaunch grade" in capsys.readouterr().err


@pytest.fixture
def class_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "class"
    for name in ("anna/ex02.ipynb", "ben.ipynb", "=cmd.ipynb", "broken.ipynb", ".ipynb_checkpoints/ben.ipynb"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    return folder


def test_a_class_is_graded_to_the_end_whatever_one_submission_does(grades, class_folder, tmp_path, capsys):
    grades(
        {
            "ex02.ipynb": (PASS, PASS),
            "ben.ipynb": (PASS, FAIL),
            "=cmd.ipynb": CannotGrade("it is not JSON"),
            "broken.ipynb": ZeroDivisionError("in the grader itself"),
        }
    )
    assert main(["grade", "--class", str(class_folder), "--csv", str(tmp_path / "out.csv")]) == command.CANNOT
    said = capsys.readouterr().out
    assert "4 submissions: 1 with all checks, 2 that could not be graded" in said
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = {row["submission"]: row for row in csv.DictReader(file)}
    assert rows.keys() == {"anna/ex02.ipynb", "ben.ipynb", "'=cmd.ipynb", "broken.ipynb"}, "no formula, no checkpoint"
    assert (rows["anna/ex02.ipynb"]["score"], rows["ben.ipynb"]["score"]) == ("2", "1")
    assert rows["ben.ipynb"]["checks"] == "1 PASS; 2 FAIL"
    assert "our fault" in rows["broken.ipynb"]["notes"]


def test_a_class_is_graded_several_at_once(monkeypatch, class_folder):
    both = threading.Barrier(2, timeout=30)

    def grade(path: Path, seconds: float | None) -> Result:
        both.wait()  # passes only if another one is at work
        return judged(path, PASS)

    monkeypatch.setattr(session, "grade", grade)
    paths = classroom.submissions(class_folder)
    rows = list(classroom.grade_all(paths, class_folder, jobs=2))
    assert len(rows) == len(paths) == 4
    assert all(row.graded for row in rows)


@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_a_class_without_notebooks_is_refused_in_a_sentence(folder, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert main(["grade", "--class", str(tmp_path / folder)]) == command.CANNOT
    assert folder in capsys.readouterr().err


def test_a_csv_that_cannot_be_written_is_said_before_anything_is_graded(monkeypatch, class_folder, tmp_path, capsys):
    monkeypatch.setattr(session, "grade", lambda *_: pytest.fail("graded"))
    out = tmp_path / "nowhere" / "out.csv"
    assert main(["grade", "--class", str(class_folder), "--csv", str(out)]) == command.CANNOT
    assert "cannot be written" in capsys.readouterr().err


def test_watching_judges_again_after_each_save_and_ends_when_all_passes(monkeypatch, tmp_path):
    path = tmp_path / "mine.ipynb"
    path.write_text("1")
    statuses = [command.PARTIAL, command.CANNOT, command.ALL]
    sleeps = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) % 2 == 0:  # the first look finds it as it was
            path.write_text("x" * (10 + len(sleeps)))

    monkeypatch.setattr(command.time, "sleep", sleep)
    assert command.watch(path, lambda: statuses.pop(0)) == command.ALL
    assert statuses == []
    assert len(sleeps) == 4


def test_watching_sees_a_save_during_the_judging(monkeypatch, tmp_path):
    path = tmp_path / "mine.ipynb"
    path.write_text("1")
    judged_as = []

    def judge() -> int:
        judged_as.append(path.read_text())
        if len(judged_as) == 1:
            path.write_text("22")
            return command.PARTIAL
        return command.ALL

    monkeypatch.setattr(command.time, "sleep", lambda _: pytest.fail("waited for a save that had happened"))
    assert command.watch(path, judge) == command.ALL
    assert judged_as == ["1", "22"]


def test_ctrl_c_ends_the_watching_with_the_last_status(monkeypatch, tmp_path, capsys):
    path = tmp_path / "mine.ipynb"
    path.write_text("1")

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command.time, "sleep", interrupted)
    assert command.watch(path, lambda: command.PARTIAL) == command.PARTIAL


def test_watching_a_file_that_is_not_there_ends_at_once(tmp_path):
    assert command.watch(tmp_path / "nowhere.ipynb", lambda: command.CANNOT) == command.CANNOT


def test_progress_names_every_exercise_and_what_is_missing(grades, tmp_path, capsys):
    shutil.copy(EXERCISE, tmp_path)
    grades({EXERCISE.name: (PASS, FAIL, NOT_STARTED)})
    assert main(["exercises", str(tmp_path)]) == command.PARTIAL
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(checks.keys()) + 1
    assert any("ex02" in line and "+x." in line and "1 of 3" in line for line in lines)
    assert sum("no ex" in line for line in lines) == len(checks.keys()) - 1
    assert main(["exercises", str(tmp_path / "nowhere")]) == command.CANNOT
