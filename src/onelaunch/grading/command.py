"""``onelaunch grade`` judges exercise notebooks, ``onelaunch exercises`` shows how far one has come."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from onelaunch.grading import checks, classroom, report, session
from onelaunch.grading.base import OUR_FAULT
from onelaunch.grading.session import Result
from onelaunch.grading.submission import CannotGrade, released

ALL, PARTIAL, CANNOT = 0, 1, 2
LOOK_SECONDS = 0.5  # between two looks at a file that is watched


def add_parsers(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``grade`` and ``exercises`` to the command line."""
    grade = commands.add_parser(
        "grade",
        help="judge an exercise",
        description="Put the answer cells of a notebook into a fresh copy of the exercise, run it under nbval, and "
        "judge each check. Exits with 0 if all passed, 1 if some did not, 2 if a notebook could not be graded. This "
        "stops accidents, not attackers: an answer runs on this machine, in the process that judges it.",
    )
    grade.add_argument("notebooks", nargs="*", metavar="NOTEBOOK", help="such as exercises/ex02_pad_a_batch.ipynb")
    grade.add_argument(
        "--hint", type=int, nargs="?", const=1, default=0, choices=(0, 1, 2, 3), metavar="N",
        help="show N of three hints to each check that did not pass (without N: 1)",
    )  # fmt: skip
    grade.add_argument(
        "--seconds", type=_positive, default=None, metavar="S", help="time for one check (default: the exercise's)"
    )
    grade.add_argument("--json", action="store_true", help="the result as JSON")
    grade.add_argument("--junit", metavar="FILE", help="write JUnit XML to FILE too")
    grade.add_argument("--watch", action="store_true", help="judge again each time that the notebook is saved")
    grade.add_argument(
        "--class", dest="folder", metavar="DIR", help="for teachers: judge all notebooks in DIR, several at once"
    )
    grade.add_argument("--csv", metavar="FILE", help="with --class: write a row for each notebook to FILE")
    grade.set_defaults(run=main, error=grade.error)

    exercises = commands.add_parser(
        "exercises",
        help="show how far you have come",
        description="Judge the exercises that are in a folder and show what has passed. Exits as grade does.",
    )
    exercises.add_argument(
        "folder", nargs="?", default="exercises", metavar="DIR", help="where your copies are (default: %(default)s)"
    )
    exercises.set_defaults(run=progress)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds above 0")
    return value


def main(args: argparse.Namespace) -> int:
    """Grade the notebooks. Returns the exit status."""
    if args.folder is not None:
        if args.notebooks or args.watch or args.json or args.junit or args.hint:
            args.error("--class DIR goes with --csv and --seconds only, and takes its notebooks from DIR")
        return grade_class(args)
    if args.csv:
        args.error("--csv belongs to --class DIR")
    if not args.notebooks:
        args.error("name a notebook, such as exercises/ex02_pad_a_batch.ipynb")
    if args.watch:
        if len(args.notebooks) > 1 or args.json or args.junit:
            args.error("--watch takes one notebook, and no --json or --junit")
        return watch(Path(args.notebooks[0]), lambda: grade_files(args))
    return grade_files(args)


def grade_files(args: argparse.Namespace) -> int:
    """Grade each notebook that is named."""
    results: list[Result] = []
    broken: list[tuple[str, str]] = []
    for name in args.notebooks:
        try:
            results.append(session.grade(Path(name), args.seconds))
        except CannotGrade as error:
            broken.append((name, str(error)))
            print(f"onelaunch grade: {error}", file=sys.stderr)
        else:
            if not args.json:
                print(report.as_text(results[-1], args.hint), flush=True)
    if args.json:
        print(json.dumps([report.as_dict(result) for result in results], indent=1))
    if args.junit:
        try:
            Path(args.junit).write_text(report.as_junit(results, broken), encoding="utf-8")
        except OSError as error:
            print(f"onelaunch grade: --junit {args.junit} cannot be written: {error.strerror}.", file=sys.stderr)
            return CANNOT
    if broken or any(verdict.status == OUR_FAULT for result in results for verdict in result.verdicts):
        return CANNOT
    return ALL if all(result.score == len(result.verdicts) for result in results) else PARTIAL


def watch(path: Path, judge: Callable[[], int]) -> int:
    """Judge now and after every save, until Ctrl-C or until all checks pass. Returns the last exit status."""
    while True:
        seen = _saved(path)
        status = judge()
        if status == ALL or seen is None:
            return status
        print(f"watching {path}: save it to be judged again (Ctrl-C ends)", flush=True)
        try:
            # A file that is gone for a moment is being saved.
            while (now := _saved(path)) is None or now == seen:
                time.sleep(LOOK_SECONDS)
        except KeyboardInterrupt:
            print(file=sys.stderr)
            return status


def _saved(path: Path) -> tuple[int, int] | None:
    """What changes when a file is saved; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def grade_class(args: argparse.Namespace) -> int:
    """Grade a folder of submissions. Returns the exit status."""
    folder, rows = Path(args.folder), []
    try:
        paths = classroom.submissions(folder)
        if args.csv:  # a name that cannot be written is said before an hour of grading
            classroom.write_csv([], Path(args.csv))
        for row in classroom.grade_all(paths, folder, args.seconds):
            rows.append(row)
            print(f"[{len(rows)}/{len(paths)}] {_in_a_line(row)}", flush=True)
    except CannotGrade as error:
        print(f"onelaunch grade: {error}", file=sys.stderr)
        return CANNOT
    except OSError as error:
        print(f"onelaunch grade: --csv {args.csv} cannot be written: {error.strerror}.", file=sys.stderr)
        return CANNOT
    finally:
        if args.csv and rows:  # also after Ctrl-C
            classroom.write_csv(rows, Path(args.csv))
    graded = [row.result for row in rows if row.result is not None and row.graded]
    full = sum(result.score == len(result.verdicts) for result in graded)
    print(f"{len(rows)} submissions: {full} with all checks, {len(rows) - len(graded)} that could not be graded")
    if len(graded) < len(rows):
        return CANNOT
    return ALL if full == len(rows) else PARTIAL


def _in_a_line(row: classroom.Row) -> str:
    if row.result is None:
        return f"{row.name}: not graded: {row.why}"
    missing = ", ".join(f"{v.number} {v.status}" for v in row.result.verdicts if v.status != "PASS")
    score = f"{row.result.score} of {len(row.result.verdicts)}"
    return f"{row.name}: {row.result.exercise.key} {score}" + (f" ({missing})" if missing else "")


def progress(args: argparse.Namespace) -> int:
    """Show what has passed in each exercise. Returns the exit status."""
    folder = Path(args.folder)
    if not folder.is_dir():
        print(
            f"onelaunch exercises: there is no folder {str(folder)!r}: name the one that your copies are in.",
            file=sys.stderr,
        )
        return CANNOT
    passed = total = 0
    status = ALL
    for key in released():
        exercise = checks.load(key)
        total += len(exercise.checks)
        path = next(iter(sorted(folder.glob(f"{key}*.ipynb"))), None)
        line, found = f"no {key}_*.ipynb in {folder}", PARTIAL
        if path is not None:
            try:
                result = session.grade(path)
            except CannotGrade as error:
                line, found = str(error), CANNOT
            else:
                passed += result.score
                marks = "".join({"PASS": "+", "NOT STARTED": "."}.get(v.status, "x") for v in result.verdicts)
                line = f"{marks:8}{result.score} of {len(marks)}"
                found = ALL if result.score == len(marks) else PARTIAL
                if any(verdict.status == OUR_FAULT for verdict in result.verdicts):
                    found = CANNOT
        status = max(status, found)
        print(f"{key} {exercise.title:34} {line}", flush=True)
    print(f"{passed} of {total} checks pass  (+ passed, x failed, . not started)")
    return status
