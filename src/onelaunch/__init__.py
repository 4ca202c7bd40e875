"""One Launch: CUDA Graphs for LLM decoding, as a book you can run. These are the names a reader types.

``LLM`` writes text, ``SamplingParams`` says how; ``cuda`` is torch's graph API on whatever machine this is,
``sanitize`` finds out what a replay of your step gets wrong. Importing this package is light: the engine, and torch
with it, is loaded when a name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onelaunch import cuda
    from onelaunch.engine.core import SamplingParams
    from onelaunch.engine.llm import LLM
    from onelaunch.errors import ModelNotFoundError, RequestError
    from onelaunch.sanitizer import sanitize

__all__ = ["LLM", "ModelNotFoundError", "RequestError", "SamplingParams", "cuda", "sanitize"]
__version__ = "0.1.0"

_HOME = {
    "LLM": "onelaunch.engine.llm",
    "ModelNotFoundError": "onelaunch.errors",
    "RequestError": "onelaunch.errors",
    "SamplingParams": "onelaunch.engine.core",
    "sanitize": "onelaunch.sanitizer",
}


def __getattr__(name: str) -> Any:
    if name == "cuda":
        return import_module("onelaunch.cuda")
    if name not in _HOME:
        raise AttributeError(f"module 'onelaunch' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
