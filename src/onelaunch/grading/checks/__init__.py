"""The checks of each exercise, a module each: ``exNN.py`` holds ``exercise``."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onelaunch.grading.base import Exercise


def keys() -> list[str]:
    """The exercises there are: ``["ex01", ...]``."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(key: str) -> Exercise:
    """The exercise ``key`` with its checks. Raises ValueError where there is none."""
    if key not in keys():
        raise ValueError(f"there is no exercise {key!r}; there are {', '.join(keys())}")
    exercise: Exercise = import_module(f"{__name__}.{key}").exercise
    return exercise
