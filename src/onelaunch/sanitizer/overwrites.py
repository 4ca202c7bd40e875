"""Outputs that were overwritten before they were read: by the next replay of their own graph, or by that of another
graph in the same pool.

The host code before a step is listened to. A reference to the graph's memory that it keeps becomes a tensor object of
its own, which knows from which round it is; each replay of any graph notes whose outputs it destroys.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from onelaunch.graphs import CUDAGraph
from onelaunch.sanitizer.outcome import same
from onelaunch.sanitizer.owners import Names, Root, members, span, walk
from onelaunch.sanitizer.recording import Recording
from onelaunch.sanitizer.report import Finding
from onelaunch.tape import Buffer, Pool, Tape
from onelaunch.tape.pool import block_of
from onelaunch.tape.source import user_line

_NO_READS = frozenset(("__get__", "size", "dim", "numel", "stride", "data_ptr", "element_size", "is_contiguous"))
_FIX = "Clone what you keep: output.clone() after the replay, before the next one."


@dataclass(frozen=True, eq=False)
class Kept:
    """A reference that the caller kept. round: the replay whose output it was meant to be; content: that output."""

    path: str
    tensor: Tensor
    round: int
    content: Tensor


class Overwrites:
    """What the caller does with outputs. ``listening`` surrounds its code; ``keep`` follows it."""

    def __init__(self, start: list[Root]) -> None:
        self.findings: list[Finding] = []
        self._start = start
        self._pool: Pool | None = None
        self._home: set[tuple[int, object]] = set()  # where the step itself left its results
        self._kept: dict[int, Kept] = {}  # by identity
        self._replays = 0
        self._tapes: list[Tape] = []
        self._destroyed: dict[tuple[int, int], tuple[Tape, Buffer]] = {}  # by tape and buffer

    def captured(self, recorded: Recording) -> None:
        """Note where the captured step left its results."""
        self._pool = recorded.tape.pool
        self._home = {(id(holder), key) for _, holder, key, _ in self._references()}

    def replayed(self) -> None:
        self._replays += 1

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear what the caller reads and which graphs it replays."""
        original = CUDAGraph.replay

        @functools.wraps(original)
        def replay(graph: CUDAGraph) -> None:
            original(graph)
            if graph.tape is not None:
                self._note(graph.tape)

        CUDAGraph.replay = replay  # type: ignore[method-assign, assignment]
        try:
            with _Reads(self):
                yield
        finally:
            CUDAGraph.replay = original  # type: ignore[method-assign]

    def keep(self) -> None:
        """Give what the caller has kept since the last replay an identity of its own."""
        for path, holder, key, tensor in list(self._references()):
            if (id(holder), key) in self._home or id(tensor) in self._kept:
                continue
            alias = tensor.detach()
            self._kept[id(alias)] = Kept(path, alias, self._replays, alias.clone())
            _put(holder, key, alias)

    def read(self, tensor: Tensor) -> None:
        """The caller looks at ``tensor``."""
        kept = self._kept.get(id(tensor))
        if kept is not None and 0 < kept.round < self._replays and not same(kept.tensor, kept.content):
            why = (
                f"{kept.path or 'it'} was kept after round {kept.round} and is read after round {self._replays}: it is "
                "the graph's own memory, so by now it holds the later output"
            )
            self.findings.append(Finding("overwritten-output", kept.path or None, user_line(), why, _FIX))
        if self._destroyed and tensor.layout is torch.strided and block_of(tensor.untyped_storage()) is not None:
            self._check(*span(tensor), None, user_line())

    def step(self, recorded: Recording, names: Names) -> None:
        """The graph is about to be replayed: look at what it reads of other graphs' memory."""
        if not self._destroyed:
            return
        for kernel in recorded.tape.kernels:
            for ref in kernel.reads:
                buffer = recorded.tape.buffers[ref.buffer]
                if buffer.outside and buffer.opaque is None:
                    start, end = ref.span
                    place = names.of(buffer.address + start, buffer.address + end)
                    name = place.path if place is not None else None
                    self._check(buffer.address + start, buffer.address + end, name, kernel.where)

    def _check(self, start: int, end: int, name: str | None, where: Any) -> None:
        for by, buffer in self._destroyed.values():
            if start < buffer.address + buffer.nbytes and buffer.address < end:
                if any(b.kind == "output" and b.address == buffer.address for b in by.buffers):
                    continue  # the memory was given on, and this reader may mean the new owner's
                why = (
                    f"{name or 'it'} is the output of a graph whose memory another graph of the same pool uses for its "
                    "own results, and that one was replayed since"
                )
                fix = "Clone the output before the other graph is replayed, or give the two graphs pools of their own."
                self.findings.append(Finding("overwritten-output", name, where, why, fix))

    def _note(self, tape: Tape) -> None:
        for key in [key for key in self._destroyed if key[0] == id(tape)]:
            del self._destroyed[key]
        for other in self._tapes:
            if other is not tape:
                for buffer in tape.overwrites(other):
                    self._destroyed[id(other), buffer.index] = (tape, buffer)
        if not any(known is tape for known in self._tapes):
            self._tapes.append(tape)

    def _references(self) -> Iterator[tuple[str, Any, object, Tensor]]:
        """Path, holder, key and tensor of every reference to the graph's own memory."""
        if self._pool is None:
            return
        segments = {id(segment) for segment in self._pool.segments}
        for path, holder, _ in walk(self._start):
            if isinstance(holder, (Tensor, str)):
                continue
            for name, value in members(holder) or ():
                if isinstance(value, Tensor) and value.layout is torch.strided:
                    block = block_of(value.untyped_storage())
                    if block is not None and id(block.segment) in segments:
                        yield f"{path}.{name}" if path else name, holder, name, value


def _put(holder: Any, key: Any, value: Tensor) -> None:
    """Let ``holder`` refer to ``value``. What cannot be changed keeps its object."""
    if isinstance(holder, types.FunctionType):
        for name, cell in zip(holder.__code__.co_freevars, holder.__closure__ or (), strict=True):
            if name == key:
                cell.cell_contents = value
                return
        if key in holder.__globals__:
            holder.__globals__[key] = value
    elif isinstance(holder, MutableMapping):
        for known in list(holder):
            if str(known) == key:
                holder[known] = value
    elif isinstance(holder, (list, deque)):
        holder[int(key)] = value
    elif not isinstance(holder, Sequence) and key in getattr(holder, "__dict__", {}):
        holder.__dict__[key] = value


class _Reads(TorchFunctionMode):
    def __init__(self, overwrites: Overwrites) -> None:
        super().__init__()
        self._overwrites = overwrites

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") not in _NO_READS:
            with torch._C.DisableTorchFunction():
                for leaf in pytree.tree_leaves((args, kwargs)):
                    if isinstance(leaf, Tensor):
                        self._overwrites.read(leaf)
        return func(*args, **kwargs)
