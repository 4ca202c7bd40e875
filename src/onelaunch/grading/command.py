"""``onelaunch grade``: judge exercise notebooks and print what came of it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from onelaunch.grading import report, session
from onelaunch.grading.base import OUR_FAULT
from onelaunch.grading.session import Result
from onelaunch.grading.submission import CannotGrade

ALL, PARTIAL, CANNOT = 0, 1, 2


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``grade`` to the command line."""
    grade = commands.add_parser(
        "grade",
        help="judge an exercise",
        description="Put the answer cells of a notebook into a fresh copy of the exercise, run it under nbval, and "
        "judge each check. Exits with 0 if all passed, 1 if some did not, 2 if a notebook could not be graded. This "
        "stops accidents, not attackers: an answer runs on this machine, in the process that judges it.",
    )
    grade.add_argument("notebooks", nargs="+", metavar="NOTEBOOK", help="such as exercises/ex02_pad_a_batch.ipynb")
    grade.add_argument(
        "--hint", type=int, nargs="?", const=1, default=0, choices=(0, 1, 2, 3), metavar="N",
        help="show N of three hints to each check that did not pass (without N: 1)",
    )  # fmt: skip
    grade.add_argument(
        "--seconds", type=_positive, default=None, metavar="S", help="time for one check (default: the exercise's)"
    )
    grade.add_argument("--json", action="store_true", help="the result as JSON")
    grade.add_argument("--junit", metavar="FILE", help="write JUnit XML to FILE too")
    grade.set_defaults(run=main)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds above 0")
    return value


def main(args: argparse.Namespace) -> int:
    """Grade the notebooks. Returns the exit status."""
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
