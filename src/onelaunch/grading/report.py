"""Results of grading as a person reads them, and as JSON and JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from onelaunch.grading.base import FAIL, NOT_STARTED, OUR_FAULT, PASS
from onelaunch.grading.session import Result


def as_text(result: Result, hints: int = 0) -> str:
    """What a learner sees. hints: how many of the three prepared hints stand below each check that did not pass."""
    lines = [f"{result.exercise.key} {result.exercise.title} ({result.path})"]
    lines += [f"  note: {note}" for note in result.notes]
    for verdict in result.verdicts:
        lines += [f"  {line}" for line in verdict.text(hints).splitlines()]
    lines.append(f"  score: {result.score} of {len(result.verdicts)} in {result.seconds:.1f} s")
    return "\n".join(lines)


def as_dict(result: Result) -> dict[str, Any]:
    """The same as data."""
    fields = ("number", "title", "status", "call", "expected", "got", "hint", "hints")
    return {
        "path": result.path,
        "exercise": result.exercise.key,
        "title": result.exercise.title,
        "score": result.score,
        "of": len(result.verdicts),
        "seconds": round(result.seconds, 3),
        "notes": result.notes,
        "checks": [{name: getattr(verdict, name) for name in fields} for verdict in result.verdicts],
    }


def as_junit(results: Sequence[Result], broken: Sequence[tuple[str, str]] = ()) -> str:
    """JUnit XML: a suite for each notebook, a case for each check. broken: path and reason of what was not graded."""
    root = ElementTree.Element("testsuites")
    for result in results:
        statuses = [verdict.status for verdict in result.verdicts]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=result.path,
            tests=str(len(statuses)),
            failures=str(statuses.count(FAIL)),
            skipped=str(statuses.count(NOT_STARTED)),
            errors=str(statuses.count(OUR_FAULT)),
            time=f"{result.seconds:.3f}",
        )
        for verdict in result.verdicts:
            name = f"{verdict.number} {verdict.title}"
            case = ElementTree.SubElement(suite, "testcase", classname=verdict.exercise, name=name)
            if verdict.status != PASS:
                kind = {FAIL: "failure", NOT_STARTED: "skipped"}.get(verdict.status, "error")
                child = ElementTree.SubElement(case, kind, message=_printable(verdict.got or verdict.status))
                child.text = _printable(verdict.text())
    for path, reason in broken:
        suite = ElementTree.SubElement(root, "testsuite", name=path, tests="1", failures="0", errors="1")
        case = ElementTree.SubElement(suite, "testcase", classname=path, name="can be graded")
        ElementTree.SubElement(case, "error", message=_printable(reason))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _printable(text: str) -> str:
    """Text without the characters that XML has no way to hold."""
    return "".join(
        c if c in "\t\n" or " " <= c < "\ud800" or "\ue000" <= c < "\ufffe" or c > "\uffff" else "?" for c in text
    )
