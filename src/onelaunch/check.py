"""``onelaunch check path.py:function``: run the sanitizer on a step of your own, for a person or for a CI.

The function takes no arguments and returns ``(prepare, step)``, or a dict, dataclass or namespace with ``prepare``,
``step`` and, if you like, ``owners``, ``padding`` and ``rounds``: the arguments of ``onelaunch.sanitize``.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from onelaunch.check_formats import as_annotation, as_sarif, error_annotation, relative
from onelaunch.sanitizer import Report, SanitizerError, sanitize

FOUND, CANNOT = 1, 2
_ARGUMENTS = ("prepare", "step", "rounds", "owners", "padding")


class CheckError(Exception):
    """What was asked for could not be checked. The text says why."""


def main(target: str, rounds: int | None, style: str, sarif: str | None) -> int:
    """Check ``target`` and print the report: as ``text``, ``json`` or ``github`` annotations. sarif: a file to write
    too.

    Returns 0 where nothing was found, 1 where something was, 2 where it could not be checked; then JSON, annotations
    and SARIF have the reason, and nothing that could be taken for a clean report.
    """
    report, reason = Report(), None
    try:
        with _own_stdout():
            report = run(target, rounds)
    except CheckError as error:
        reason = str(error)
    if sarif is not None:
        try:
            Path(sarif).write_text(json.dumps(as_sarif(report, reason), indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            reason = reason or f"--sarif {sarif} cannot be written: {error.strerror}."
    if reason is not None:
        print(f"onelaunch check: {reason}", file=sys.stderr)
    if style == "json":
        content = report.as_dict() if reason is None else {"error": reason}
        print(json.dumps({"target": target, **content}, indent=1))
    elif style == "github":
        for line in [as_annotation(finding) for finding in report] if reason is None else [error_annotation(reason)]:
            print(line)
    elif reason is None:
        print(report)
    if reason is not None:
        return CANNOT
    return FOUND if report.findings else 0


def run(target: str, rounds: int | None = None) -> Report:
    """The report on ``target``, "path.py:function". Raises CheckError where there can be none."""
    function = load(target)
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise CheckError(f"{target} is called without arguments: {error}.") from error
    except ValueError:  # no signature to be had
        pass
    made = _calling(function, target)
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
        raise CheckError(
            f"{path!r} is a folder: name a file in it." if file.is_dir() else f"there is no file {path!r}."
        )
    module = _calling(lambda: _imported(file), path)
    function = getattr(module, name, None)
    if not callable(function):
        there = [n for n, value in vars(module).items() if _is_own_function(value, module) and not n.startswith("_")]
        raise CheckError(f"{path} has no function {name!r}; there is {', '.join(there) or 'none'}.")
    return function


def _imported(file: Path) -> ModuleType:
    """The module in ``file``; as part of its package where it lies in one, so that relative imports work."""
    folder, names = file.resolve().parent, [file.stem]
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    sys.path.insert(0, str(folder))  # it may import what lies beside it
    if len(names) > 1 and file.suffix == ".py":
        return importlib.import_module(".".join(names))
    spec = importlib.util.spec_from_file_location(f"checked_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise CheckError(f"{str(file)!r} is no Python file: its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def _is_own_function(value: Any, module: ModuleType) -> bool:
    return callable(value) and not isinstance(value, type) and getattr(value, "__module__", None) == module.__name__


def arguments_of(made: Any, target: str) -> dict[str, Any]:
    """What the function returned, as arguments of ``sanitize``."""
    if isinstance(made, (tuple, list)) and len(made) == 2:
        return {"prepare": made[0], "step": made[1]}
    inside = dict(made) if isinstance(made, Mapping) else {n: getattr(made, n) for n in _ARGUMENTS if hasattr(made, n)}
    if "prepare" not in inside or "step" not in inside:
        if hasattr(made, "close"):
            made.close()  # a generator or a coroutine, which would complain that nobody ran it
        raise CheckError(
            f"{target} returned {type(made).__name__}: return (prepare, step), or a dict or dataclass with these and, "
            "if you like, owners, padding and rounds."
        )
    unknown = sorted(set(map(str, inside)) - set(_ARGUMENTS))
    if unknown:
        raise CheckError(f"{target} returned the unknown key {unknown[0]!r}; there is {', '.join(_ARGUMENTS)}.")
    return {name: value for name, value in inside.items() if value is not None or name in ("prepare", "step")}


@contextmanager
def _own_stdout() -> Iterator[None]:
    """Send what others print to stderr, whether Python prints it, a library or a child process: it is no part of the
    report. What is printed when the interpreter ends goes there as well."""
    with redirect_stdout(sys.stderr):
        if sys.__stdout__ is None or sys.__stderr__ is None:
            yield
            return
        try:
            sys.__stdout__.flush()
            out, err = sys.__stdout__.fileno(), sys.__stderr__.fileno()
            kept = os.dup(out)
        except (OSError, ValueError):  # closed, or none of the system's
            yield
            return
        os.dup2(err, out)
        try:
            yield
        finally:
            os.dup2(kept, out)
            os.close(kept)
            atexit.register(_end_quietly, out, err)


def _end_quietly(out: int, err: int) -> None:
    with suppress(OSError, ValueError):
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()
        os.dup2(err, out)


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
        place = f" at {relative(own[-1].filename)}:{own[-1].lineno}" if own else ""
        text = " ".join(str(error).split())
        raise CheckError(f"{what} raised {type(error).__name__}{place}{': ' + text if text else ''}") from error


def _is_library(file: str) -> bool:
    home = os.path.dirname(os.path.abspath(__file__))
    return file.startswith((home, "<frozen")) or "site-packages" in file or not os.path.exists(file)
