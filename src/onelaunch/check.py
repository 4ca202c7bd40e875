"""``onelaunch check path.py:function``: run the sanitizer on a step of your own, for a person or for a CI.

The function takes no arguments and returns ``(prepare, step)``, or a dict, dataclass or namespace with ``prepare``,
``step`` and, if you like, ``owners``, ``padding`` and ``rounds``: the arguments of ``onelaunch.sanitize``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from urllib.parse import quote

import onelaunch
from onelaunch.sanitizer import KINDS, Finding, Report, SanitizerError, sanitize

FOUND, CANNOT = 1, 2
_ARGUMENTS = ("prepare", "step", "rounds", "owners", "padding")
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class CheckError(Exception):
    """What was asked for could not be checked. The text says why."""


def main(target: str, rounds: int | None, style: str, sarif: str | None) -> int:
    """Check ``target`` and print the report: as ``text``, ``json`` or ``github`` annotations. sarif: a file to write
    too.

    Returns 0 where nothing was found, 1 where something was, 2 where it could not be checked.
    """
    try:
        with redirect_stdout(sys.stderr):  # what the user's code prints is no part of the report
            report = run(target, rounds)
        if sarif is not None:
            try:
                Path(sarif).write_text(json.dumps(as_sarif(report), indent=2) + "\n", encoding="utf-8")
            except OSError as error:
                raise CheckError(f"--sarif {sarif} cannot be written: {error.strerror}.") from error
    except CheckError as error:
        print(f"onelaunch check: {error}", file=sys.stderr)
        return CANNOT
    if style == "json":
        print(json.dumps({"target": target, **report.as_dict()}, indent=1))
    elif style == "github":
        for finding in report:
            print(as_annotation(finding))
    else:
        print(report)
    return FOUND if report.findings else 0


def run(target: str, rounds: int | None = None) -> Report:
    """The report on ``target``, "path.py:function". Raises CheckError where there can be none."""
    function = load(target)
    made = _calling(function, f"{target}")
    arguments = arguments_of(made, target)
    if rounds is not None:
        arguments["rounds"] = rounds
    return _calling(lambda: sanitize(**arguments), "the check")


def load(target: str) -> Callable[[], Any]:
    """The function that ``target`` names."""
    path, colon, name = target.rpartition(":")
    if not colon or not path or not name:
        raise CheckError(f"{target!r} is no path.py:function. Name a file and a function in it, with a colon between.")
    file = Path(path)
    if not file.is_file():
        raise CheckError(f"there is no file {path!r}.")
    spec = importlib.util.spec_from_file_location(f"checked_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise CheckError(f"{path!r} is no Python file: its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(file.resolve().parent))  # it may import what lies beside it
    loader = spec.loader
    _calling(lambda: loader.exec_module(module), path)
    function = getattr(module, name, None)
    if not callable(function):
        there = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
        raise CheckError(f"{path} has no function {name!r}; there is {', '.join(there) or 'none'}.")
    return function


def arguments_of(made: Any, target: str) -> dict[str, Any]:
    """What the function returned, as arguments of ``sanitize``."""
    if isinstance(made, (tuple, list)) and len(made) == 2:
        return {"prepare": made[0], "step": made[1]}
    inside = dict(made) if isinstance(made, Mapping) else {n: getattr(made, n) for n in _ARGUMENTS if hasattr(made, n)}
    if "prepare" not in inside or "step" not in inside:
        raise CheckError(
            f"{target} returned {type(made).__name__}: return (prepare, step), or a dict or dataclass with these and, "
            "if you like, owners, padding and rounds."
        )
    unknown = sorted(set(inside) - set(_ARGUMENTS))
    if unknown:
        raise CheckError(f"{target} returned the unknown key {unknown[0]!r}; there is {', '.join(_ARGUMENTS)}.")
    return {name: value for name, value in inside.items() if value is not None or name == "padding"}


def _calling(function: Callable[[], Any], what: str) -> Any:
    """Call the user's code; what it raises becomes one sentence with its place."""
    try:
        return function()
    except (CheckError, KeyboardInterrupt):
        raise
    except SanitizerError as error:
        raise CheckError(str(error)) from error
    except BaseException as error:  # SystemExit of a script too
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if not _is_library(frame.filename)]
        place = f" at {_relative(own[-1].filename)}:{own[-1].lineno}" if own else ""
        text = " ".join(str(error).split())
        raise CheckError(f"{what} raised {type(error).__name__}{place}{': ' + text if text else ''}") from error


def _is_library(file: str) -> bool:
    home = os.path.dirname(os.path.abspath(__file__))
    return file.startswith((home, "<frozen")) or "site-packages" in file or not os.path.exists(file)


def as_annotation(finding: Finding) -> str:
    """A finding as GitHub shows it at the line of a pull request."""
    title = f"{finding.kind} {finding.tensor}" if finding.tensor else finding.kind
    at = {"file": _relative(finding.where.file), "line": str(max(finding.where.line, 1)), "title": title}
    properties = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in at.items())
    return f"::error {properties}::{_escaped(f'{finding.why}' + chr(10) + f'Fix: {finding.fix}')}"


def _escaped(text: str, also: str = "") -> str:
    for character in "%\r\n" + also:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def as_sarif(report: Report) -> dict[str, Any]:
    """The report in SARIF 2.1.0."""
    used = [kind for kind in KINDS if kind in report.kinds]
    results = []
    for finding in report:
        subject = f"{finding.tensor}: " if finding.tensor else ""
        place: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.where.file)}}
        if finding.where.line > 0:
            place["region"] = {"startLine": finding.where.line}
        results.append(
            {
                "ruleId": finding.kind,
                "ruleIndex": used.index(finding.kind),
                "level": "error",
                "message": {"text": f"{subject}{finding.why}\nFix: {finding.fix}"},
                "locations": [{"physicalLocation": place}],
                "partialFingerprints": {"onelaunch/v1": f"{finding.kind}:{finding.tensor}:{finding.where.function}"},
            }
        )
    rules = [{"id": kind, "shortDescription": {"text": kind.replace("-", " ")}} for kind in used]
    driver = {"name": "onelaunch check", "version": onelaunch.__version__, "rules": rules}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _relative(file: str) -> str:
    """As seen from here, which in a CI is the repository, where it lies below here."""
    path = os.path.relpath(file) if os.path.isabs(file) else file
    return file if path.startswith("..") else path


def _uri(file: str) -> str:
    path = _relative(file)
    return Path(path).as_uri() if os.path.isabs(path) else quote(Path(path).as_posix())
