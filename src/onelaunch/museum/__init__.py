"""A museum of bugs that people met with CUDA Graphs, in public: each report's mechanism in a few lines of our own.

``exhibits()`` are all of them, ``exhibit("vllm-43810").show()`` shows one. Each is a module of this package.
"""

from __future__ import annotations

import functools
import pkgutil
from importlib import import_module

from onelaunch.museum.base import TOPICS, Case, Exhibit
from onelaunch.museum.gallery import Gallery
from onelaunch.museum.not_shown import NOT_SHOWN, NotShown

__all__ = [
    "NOT_SHOWN",
    "TOPICS",
    "Case",
    "Exhibit",
    "Gallery",
    "NotShown",
    "exhibit",
    "exhibits",
]
_OTHERS = ("base", "gallery", "not_shown")


@functools.cache
def exhibits() -> tuple[Exhibit, ...]:
    """All exhibits, by topic in the order of ``TOPICS``, then by name."""
    names = [
        module.name
        for module in pkgutil.iter_modules(__path__)
        if module.name not in _OTHERS
    ]
    found: list[Exhibit] = [
        import_module(f"{__name__}.{name}").EXHIBIT for name in names
    ]
    return tuple(
        sorted(
            found,
            key=lambda exhibit: (TOPICS.index(exhibit.topic), exhibit.key),
        )
    )


def exhibit(key: str) -> Exhibit:
    """The exhibit with this key. Raises ValueError, with keys like it, for any other."""
    for found in exhibits():
        if found.key == key:
            return found
    like = [found.key for found in exhibits() if key.split("-")[0] in found.key]
    raise ValueError(
        f"there is no exhibit {key!r}. There are: {', '.join(like or [e.key for e in exhibits()])}"
    )
