"""What the owners of memory call it: every tensor, array and plain value that can be reached from them, by its path.

Owners are given, or they are what the two functions hold: the variables of their closures, the globals that they name,
the object that they are methods of. Nothing is kept alive: a tensor that its owner drops is gone.
"""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_CLOSED = frozenset(sys.stdlib_module_names) - {"types", "__main__"} | {"torch", "numpy"}
_MACHINERY = tuple(
    f"onelaunch.{name}" for name in ("tape", "graphs", "capturing", "pools", "streams", "liveness", "sanitizer")
)
_NUMBERS = (bool, int, float, complex, str, type(None))
_MOST = 300_000  # objects; whoever reaches more than these reaches the interpreter itself


@dataclass(frozen=True)
class Root:
    """Where a walk begins. prefix: of the names; "" where the members are named as the owner names them."""

    prefix: str
    value: Any
    declared: bool


def roots(owners: Any, *functions: Any) -> list[Root]:
    """The owners that were given, then what the functions hold.

    owners: one, or several in a tuple or list. Raises TypeError for something that owns nothing.
    """
    given = list(owners) if isinstance(owners, (tuple, list)) else [owners]
    for owner in given:
        if isinstance(owner, (*_NUMBERS, type, types.ModuleType)):
            raise TypeError(
                f"owners: found {owner!r}, which holds no tensors. Give modules, dataclasses, SimpleNamespaces or "
                "dicts."
            )
    called = _variables(functions)
    found = []
    for n, owner in enumerate(given):
        single = isinstance(owner, (Tensor, np.ndarray))
        name = called.get(id(owner), f"owners[{n}]") if single else ""
        found.append(Root(name, owner, declared=True))
    return found + [Root("", function, declared=False) for function in functions]


def _variables(functions: Iterable[Any]) -> dict[int, str]:
    return {id(value): name for function in functions for name, value in members(function) or ()}


def members(value: Any) -> list[tuple[str, Any]] | None:
    """Name and value of what an object holds; None where it is not for us to look into."""
    if isinstance(value, nn.Module):
        inside = vars(value)
        parts = [item for part in ("_parameters", "_buffers", "_modules") for item in inside.get(part, {}).items()]
        return parts + [item for item in inside.items() if item[0] not in _MODULE_MACHINERY]
    if isinstance(value, Mapping):
        return [(str(key), item) for key, item in list(value.items())]
    if isinstance(value, (list, tuple, deque)):
        names = getattr(value, "_fields", None) or map(str, range(len(value)))
        return list(zip(names, value, strict=False))
    if isinstance(value, (set, frozenset)):
        return [(str(n), item) for n, item in enumerate(value)]
    if isinstance(value, functools.partial):
        return [("", value.func), *((str(n), item) for n, item in enumerate(value.args)), *value.keywords.items()]
    if isinstance(value, types.MethodType):
        return [("", value.__self__), *(members(value.__func__) or ())]
    if isinstance(value, types.FunctionType):
        return None if _closed(value.__module__) else function_members(value)
    if isinstance(value, (type, types.ModuleType, Tensor, np.ndarray)) or _closed(type(value).__module__):
        return list(vars(value).items()) if isinstance(value, types.SimpleNamespace) else None
    inside = getattr(value, "__dict__", {})
    slots = [name for kind in type(value).__mro__ for name in _slots(kind) if hasattr(value, name)]
    return [*inside.items(), *((name, getattr(value, name)) for name in slots)]


_MODULE_MACHINERY = frozenset(vars(nn.Module())) - {"training"}


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _closed(module: str | None) -> bool:
    """Whether a module's objects are none of the user's: the standard library's, torch's, numpy's."""
    name = module or ""
    return name.partition(".")[0] in _CLOSED or name.startswith(_MACHINERY)


def function_members(function: types.FunctionType) -> list[tuple[str, Any]]:
    """The variables that a function has from outside."""
    found = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:  # not bound yet
            continue
    for name in global_names(function.__code__):
        if name in function.__globals__ and not isinstance(function.__globals__[name], (type, types.ModuleType)):
            found.append((name, function.__globals__[name]))
    if function.__defaults__:
        found += [("", item) for item in function.__defaults__]
    return found


@functools.cache
def global_names(code: types.CodeType) -> frozenset[str]:
    """Names that a function, or one defined in it, may look up among the globals."""
    inner = [global_names(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return frozenset(code.co_names).union(*inner)


def walk(start: Iterable[Root]) -> Iterator[tuple[str, Any, bool]]:
    """Path, value and declaredness of everything that can be reached, each object once, the nearest first."""
    ahead = deque((root.prefix, root.value, root.declared) for root in start)
    seen: dict[int, Any] = {}
    while ahead and len(seen) < _MOST:
        path, value, declared = ahead.popleft()
        if isinstance(value, _NUMBERS):
            yield path, value, declared
            continue
        if isinstance(value, (Tensor, np.ndarray)):
            yield path, value, declared
            continue
        if id(value) in seen:
            continue
        seen[id(value)] = value
        inside = members(value)
        if inside is None:
            continue
        yield path, value, declared
        for name, item in inside:
            ahead.append((f"{path}.{name}" if path and name else path or name, item, declared))


@dataclass(frozen=True)
class Place:
    """Memory with a name. start, end: addresses of its first byte and one past its last."""

    path: str
    start: int
    end: int
    declared: bool
    shape: tuple[int, ...]
    base: int  # address of the whole storage
    storage: weakref.ref[torch.UntypedStorage] | None  # None where numpy owns it

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        """Names to prefer are low: declared, public, narrow, short."""
        private = any(part.startswith("_") for part in self.path.split("."))
        return not self.declared, private, self.end - self.start, self.path.count(".")


@dataclass
class Names:
    """The names at one time. values: the plain values, by path."""

    places: dict[str, Place] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def of(self, start: int, end: int) -> Place | None:
        """The best name for the memory from address ``start`` to ``end``."""
        inside = [place for place in self.places.values() if place.start <= start and end <= place.end]
        overlaps = inside or [p for p in self.places.values() if p.start < end and start < p.end]
        return min(overlaps, key=lambda place: place.rank, default=None)

    def same_storage(self, base: int) -> list[Place]:
        """All names for views of the storage at address ``base``."""
        return [place for place in self.places.values() if place.base == base]


def span(tensor: Tensor) -> tuple[int, int]:
    """Address of a tensor's first byte, and one past its last."""
    start = tensor.data_ptr()
    if tensor.numel() == 0:
        return start, start
    extent = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (extent + 1) * tensor.element_size()


def names(start: Iterable[Root]) -> Names:
    """What everything is called now."""
    found = Names()
    for path, value, declared in walk(start):
        if isinstance(value, Tensor):
            if value.layout is not torch.strided or value.device.type != "cpu" or value.numel() == 0:
                continue
            storage = value.untyped_storage()
            first, last = span(value)
            place = Place(path, first, last, declared, tuple(value.shape), storage.data_ptr(), weakref.ref(storage))
            found.places.setdefault(path, place)
        elif isinstance(value, np.ndarray):
            first = value.__array_interface__["data"][0]
            found.places.setdefault(path, Place(path, first, first + value.nbytes, declared, value.shape, first, None))
        elif isinstance(value, _NUMBERS):
            found.values.setdefault(path, value)
    return found


def of_values(before: Names, now: Names, was: object, is_: object) -> str | None:
    """The name of a plain value that was ``was`` and is ``is_`` now, if exactly one is."""
    found = [
        path
        for path, value in before.values.items()
        if type(value) is type(was) and value == was and path in now.values and now.values[path] == is_
    ]
    return found[0] if len(found) == 1 else None
