"""Where in your code an operation came from, and what your code calls a tensor."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(_HERE)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_EMULATION = ("graphs.py", "capturing.py", "pools.py", "streams.py", "graphed_callables.py", "liveness.py")
_MACHINERY = tuple(_PACKAGE + name for name in (*_EMULATION, "sanitizer" + os.sep))
_is_machinery: dict[str, bool] = {}


class Source(NamedTuple):
    """A line of Python: file, number and function."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        file = self.file
        if _below_here(file):
            file = os.path.relpath(file)
        elif file.startswith(_PACKAGE):  # wherever it was installed
            file = os.path.relpath(file, os.path.dirname(os.path.dirname(_PACKAGE)))
        return f"{file}:{self.line}"


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
    return _name(lambda value: value is tensor)


def name_of_memory(storage: torch.UntypedStorage) -> str | None:
    """What the user's innermost frame calls a tensor on ``storage``."""
    return _name(
        lambda value: (
            isinstance(value, Tensor)
            and value.layout is torch.strided
            and value.untyped_storage()._cdata == storage._cdata
        )
    )


def _name(is_it: Callable[[Any], bool]) -> str | None:
    frame = user_frame()
    if frame is None:
        return None
    for variable, value in frame.f_locals.items():
        if is_it(value):
            return variable
    for variable, value in frame.f_locals.items():
        for attribute, member in _members(value):
            if is_it(member):
                return f"{variable}.{attribute}"
    return None


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    members = getattr(value, "__dict__", None)
    if isinstance(members, dict):
        yield from members.items()
    if isinstance(value, nn.Module):
        yield from value.named_parameters()
        yield from value.named_buffers()


def _below_here(file: str) -> bool:
    return os.path.abspath(file).startswith(os.getcwd() + os.sep)
