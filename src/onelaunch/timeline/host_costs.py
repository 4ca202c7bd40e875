"""What asking for one operation costs the host, and its parts: the dispatch, Python, and a module around it.

The operation is an addition. It is asked for with tensors of growing size, in several ways with one element, and from
tapes of growing length, where no Python of a model is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from onelaunch import emulator
from onelaunch.tape import Executor, NativeExecutor, PythonExecutor, ScriptExecutor, Tape, native
from onelaunch.timeline.fit import Estimate, Line, estimate, fit_line, least_squares
from onelaunch.timeline.timing import Statement, Subject

SIZES = (1, 512, 1024, 2048, 3072, 4096, 6144, 8192)  # elements; up to here PyTorch computes on one thread
KERNELS = (1, 25, 50, 100)  # of a replayed tape
ELEMENTS = 576  # of the operation that is taken apart: one row of SmolLM2
CALLS = {  # name -> the line that is timed, and what it runs within
    "module(a, b)": ("module(a, b)", torch.inference_mode),
    "a + b": ("a + b", torch.inference_mode),
    "torch.add(a, b, out=c)": ("torch.add(a, b, out=c)", torch.inference_mode),
    "torch.ops.aten.add.Tensor(a, b)": ("add(a, b)", torch.inference_mode),
    "a.view(-1)": ("a.view(-1)", torch.inference_mode),
    "a + b under no_grad": ("a + b", torch.no_grad),
    "a + b, kept for a backward": ("weight + b", torch.enable_grad),
}
EXECUTORS: dict[str, Callable[[Tape], Executor]] = {
    "native": NativeExecutor,
    "script": ScriptExecutor,
    "python": PythonExecutor,
}

Key = tuple[str, str | int]
Medians = Mapping[Key, NDArray[np.float64]]


class Add(nn.Module):
    """The smallest module that does something."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a + b


def players() -> list[str]:
    """The executors that this machine has, the one with the least around its kernels first."""
    return [name for name in EXECUTORS if name != "native" or native.is_built()]


def host_subjects() -> dict[Key, Subject]:
    """Everything to time on the host, by what it is."""
    made: dict[Key, Subject] = {}
    for size in SIZES:
        made["size", size] = Statement("a + b", dict(zip("ab", _ones(2, size), strict=True)), torch.inference_mode)
    a, b, c = _ones(3, 1)
    names = {"torch": torch, "module": Add(), "a": a, "b": b, "c": c}
    names |= {"add": torch.ops.aten.add.Tensor, "weight": torch.ones(1, requires_grad=True)}
    for name, (code, mode) in CALLS.items():
        made["call", name] = Statement(code, names, mode)
    for length in KERNELS:
        graph = emulator.CUDAGraph(keep_graph=True)  # no executor of its own
        with emulator.graph(graph):
            for _ in range(length):
                last = a + b
        assert graph.tape is not None
        for name in players():
            player = EXECUTORS[name](graph.tape)
            made[name, length] = Statement("run()", {"run": player.run, "graph": graph, "output": last})
    return made


def operation(medians: Medians) -> Line:
    """``a + b`` against the number of elements."""
    return fit_line(SIZES, stack(medians, "size", SIZES), "element")


def calls(medians: Medians) -> dict[str, Estimate]:
    """Each way to ask for it, with one element."""
    return {name: estimate(medians["call", name]) for name in CALLS}


def replay(medians: Medians, name: str) -> Line:
    """A tape of additions, played by the executor ``name``, against the number of its kernels."""
    return fit_line(KERNELS, stack(medians, name, KERNELS), "kernel")


def parts(medians: Medians, name: str) -> dict[str, Estimate]:
    """What ``module(a, b)`` with ``ELEMENTS`` elements consists of, innermost first. They add up to it.

    name: the executor whose kernels stand for an operation that nobody asked for from Python.
    """
    _, element = least_squares(SIZES, stack(medians, "size", SIZES))
    _, dispatched = least_squares(KERNELS, stack(medians, name, KERNELS))
    plain, module = medians["call", "a + b"], medians["call", "module(a, b)"]
    return {
        "the addition": estimate(element * ELEMENTS),
        "dispatch": estimate(dispatched),
        "Python, and memory": estimate(plain - dispatched),
        "module": estimate(module - plain),
    }


def stack(medians: Medians, what: str, places: Sequence[int]) -> NDArray[np.float64]:
    """The medians of one thing at several places, [1 + draws, places]."""
    return np.stack([medians[what, place] for place in places], axis=1)


def _ones(count: int, size: int) -> list[Tensor]:
    return [torch.ones(size) for _ in range(count)]
