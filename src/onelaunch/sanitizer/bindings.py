"""Takes back what a call did to Python objects: attributes that it bound, lists that it grew, variables that it set.

A replay runs no Python. So whatever the eager run beside it binds has to be as before when the next replay comes.
"""

from __future__ import annotations

import random
import types
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from onelaunch.sanitizer.owners import Root, _slots, global_names, walk

_ARRAY_BYTES = 1 << 20  # larger arrays are not saved


class Bindings:
    """What names stood for when this was made; ``restore`` makes it so again."""

    def __init__(self, start: Iterable[Root]) -> None:
        self._undo: list[Callable[[], None]] = []
        self._seen: set[int] = set()
        for _, value, _ in walk(start):
            self._save(value)
        self._random, self._numpy = random.getstate(), np.random.get_state()

    def restore(self) -> None:
        for undo in self._undo:
            undo()
        random.setstate(self._random)
        np.random.set_state(self._numpy)

    def _save(self, value: Any) -> None:
        if isinstance(value, dict):
            self._save_dict(value)
        elif isinstance(value, (list, deque)):
            self._save_sequence(value)
        elif isinstance(value, set):
            self._save_set(value)
        elif isinstance(value, np.ndarray):
            if value.nbytes <= _ARRAY_BYTES and value.flags.writeable:
                self._save_array(value)
        elif isinstance(value, types.MethodType) and isinstance(value.__func__, types.FunctionType):
            self._save_function(value.__func__)
        elif isinstance(value, types.FunctionType):
            self._save_function(value)
        elif isinstance(getattr(value, "__dict__", None), dict):
            inside = vars(value)
            self._save_dict(inside)
            for part in ("_parameters", "_buffers", "_modules"):
                if isinstance(inside.get(part), dict):
                    self._save_dict(inside[part])
        for kind in type(value).__mro__:
            for name in _slots(kind):
                if hasattr(value, name):
                    self._save_slot(value, name)

    def _save_dict(self, value: dict[Any, Any]) -> None:
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        saved = dict(value)

        def undo() -> None:
            if len(value) != len(saved) or any(value.get(key, saved) is not item for key, item in saved.items()):
                value.clear()
                value.update(saved)

        self._undo.append(undo)

    def _save_sequence(self, value: Any) -> None:
        saved = list(value)

        def undo() -> None:
            if len(value) != len(saved) or any(a is not b for a, b in zip(value, saved, strict=True)):
                value.clear()
                value.extend(saved)

        self._undo.append(undo)

    def _save_set(self, value: set[Any]) -> None:
        saved = set(value)

        def undo() -> None:
            if value != saved:
                value.clear()
                value.update(saved)

        self._undo.append(undo)

    def _save_array(self, value: np.ndarray[Any, Any]) -> None:
        saved = value.copy()
        self._undo.append(lambda: np.copyto(value, saved))

    def _save_slot(self, value: Any, name: str) -> None:
        saved = getattr(value, name)

        def undo() -> None:
            if getattr(value, name, None) is not saved:
                object.__setattr__(value, name, saved)

        if not name.startswith("__"):
            self._undo.append(undo)

    def _save_function(self, function: types.FunctionType) -> None:
        for cell in function.__closure__ or ():
            try:
                self._save_cell(cell, cell.cell_contents)
            except ValueError:  # not bound yet
                continue
        variables = function.__globals__
        for name in global_names(function.__code__):
            if name in variables:
                self._save_global(variables, name, variables[name])

    def _save_cell(self, cell: types.CellType, saved: Any) -> None:
        def undo() -> None:
            cell.cell_contents = saved

        self._undo.append(undo)

    def _save_global(self, variables: dict[str, Any], name: str, saved: Any) -> None:
        def undo() -> None:
            variables[name] = saved

        self._undo.append(undo)
