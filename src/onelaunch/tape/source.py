"""Where in your code an operation came from, and what your code calls a tensor."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import NamedTuple

import torch
from torch import Tensor

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(_HERE)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_MACHINERY = tuple(_PACKAGE + name for name in ("emulator.py", "streams.py", "graphed.py", "cuda.py"))
_is_machinery: dict[str, bool] = {}


class Source(NamedTuple):
    """A line of Python: file, number and function."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{os.path.relpath(self.file) if _below_here(self.file) else self.file}:{self.line}"


def user_frame() -> FrameType | None:
    """The innermost frame that belongs neither to PyTorch nor to the recorder."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        machinery = _is_machinery.get(file)
        if machinery is None:
            machinery = (
                file.startswith((_HERE, _TORCH, *_MACHINERY)) or file.startswith("<frozen") or "/contextlib.py" in file
            )
            _is_machinery[file] = machinery
        if not machinery:
            return frame
        frame = frame.f_back
    return None


def user_line() -> Source:
    """The line that ``user_frame`` stands on."""
    frame = user_frame()
    if frame is None:
        return Source("<unknown>", 0, "<unknown>")
    return Source(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def name_of(tensor: Tensor) -> str | None:
    """What the user's innermost frame calls ``tensor``: a variable, or an attribute of one. None if neither."""
    frame = user_frame()
    if frame is None:
        return None
    for variable, value in frame.f_locals.items():
        if value is tensor:
            return variable
    for variable, value in frame.f_locals.items():
        members = getattr(value, "__dict__", None)
        if not isinstance(members, dict):
            continue
        for group in (members, members.get("_parameters"), members.get("_buffers")):
            for attribute, member in (group or {}).items():
                if member is tensor:
                    return f"{variable}.{attribute}"
    return None


def _below_here(file: str) -> bool:
    return os.path.abspath(file).startswith(os.getcwd() + os.sep)
