"""Exercises in a browser's page: runs the cells of one and judges them, a step at a time, where there is no kernel.

The page's worker calls ``step`` with a request as JSON and shows what comes back. Before each it tells the page which
one begins, so that the page can end a worker whose step runs too long. Plain Python.
"""

from __future__ import annotations

import io
import json
import linecache
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from importlib import import_module
from typing import Any

LONGEST = 10_000  # characters of what a cell printed that are shown

_namespace: dict[str, Any] = {}
_cells_ran: list[str] = []  # since the checks were loaded


def step(request: str) -> str:
    """Do one step; request and result are JSON.

    ``{"do": "begin"}`` forgets what earlier cells defined. ``{"do": "cell", "name": ..., "source": ...}`` runs a cell
    and gives ``printed`` and ``error``, which is empty if it raised nothing. ``{"do": "check", "exercise": ...,
    "number": ...}`` gives a verdict. Raises ValueError for any other request.
    """
    asked = json.loads(request)
    if asked.get("do") == "begin":
        _namespace.clear()
        _namespace["__name__"] = "__main__"
        return "{}"
    if asked.get("do") == "cell":
        return json.dumps(run_cell(asked["name"], asked["source"], _namespace))
    if asked.get("do") == "check":
        return json.dumps(judge(asked["exercise"], asked["number"], _namespace))
    raise ValueError(f"a step is to begin, run a cell or judge a check; asked for {asked.get('do')!r}")


def judge(exercise: str, number: int, namespace: dict[str, Any]) -> dict[str, Any]:
    """The verdict of the check as it is on disk, whatever a cell did to the one in memory."""
    if _cells_ran:
        _cells_ran.clear()
        for name in [name for name in sys.modules if name.startswith("onelaunch.grading") and name != __name__]:
            del sys.modules[name]
    checks = import_module("onelaunch.grading.checks")
    return asdict(checks.load(exercise).judge(number, namespace))


def run_cell(name: str, source: str, namespace: dict[str, Any]) -> dict[str, str]:
    """Run a cell and say what it printed and what it raised, as a traceback of the learner's own lines."""
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # tracebacks quote from here
    _cells_ran.append(name)
    printed, error = Printed(), ""
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            exec(compile(source, file, "exec", dont_inherit=True), namespace)
        except BaseException as raised:  # SystemExit and KeyboardInterrupt too: no cell ends the page's Python
            error = shown(raised)
    return {"printed": printed.text(), "error": error}


def shown(error: BaseException) -> str:
    """A traceback without the frames of Python's own files and of this one."""
    whole = traceback.TracebackException.from_exception(error)
    own = [
        frame for frame in whole.stack if frame.filename.startswith("<") and not frame.filename.startswith("<frozen")
    ]
    whole.stack = traceback.StackSummary.from_list(own)
    whole.__cause__ = whole.__context__ = None
    return "".join(whole.format()).rstrip()


class Printed(io.TextIOBase):
    """Keeps the beginning of what is printed: a loop that prints without end must not fill the memory."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0

    def write(self, text: str) -> int:
        """Keep ``text`` as far as there is room."""
        if self.length < LONGEST:
            self.parts.append(text[: LONGEST - self.length])
        self.length += len(text)
        return len(text)

    def text(self) -> str:
        """What was printed, and how much of it is left out."""
        left_out = f"\n... and {self.length - LONGEST} more characters" if self.length > LONGEST else ""
        return "".join(self.parts) + left_out
