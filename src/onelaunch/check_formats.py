"""A report as other programs want it: GitHub's annotations, and SARIF 2.1.0."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import onelaunch
from onelaunch.sanitizer import KINDS, Finding, Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_annotation(finding: Finding) -> str:
    """A finding as GitHub shows it at the line of a pull request."""
    title = f"{finding.kind} {finding.tensor}" if finding.tensor else finding.kind
    at = {"file": relative(finding.where.file), "line": str(max(finding.where.line, 1)), "title": title}
    properties = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in at.items())
    return f"::error {properties}::{_escaped(f'{finding.why}' + chr(10) + f'Fix: {finding.fix}')}"


def error_annotation(error: str) -> str:
    """As GitHub shows that there is no report."""
    return f"::error title=onelaunch check::{_escaped(error)}"


def _escaped(text: str, also: str = "") -> str:
    for character in "%\r\n" + also:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def as_sarif(report: Report, error: str | None = None) -> dict[str, Any]:
    """The report in SARIF 2.1.0. error: why there is none; without results alone a reader would take it for clean."""
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
    invocation: dict[str, Any] = {"executionSuccessful": error is None}
    if error is not None:
        invocation["toolExecutionNotifications"] = [{"level": "error", "message": {"text": error}}]
    run = {"tool": {"driver": driver}, "invocations": [invocation], "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def relative(file: str) -> str:
    """As seen from here, which in a CI is the repository, where it lies below here."""
    path = os.path.relpath(file) if os.path.isabs(file) else file
    return file if path.startswith("..") else path


def _uri(file: str) -> str:
    path = relative(file)
    return Path(path).as_uri() if os.path.isabs(path) else quote(Path(path).as_posix())
