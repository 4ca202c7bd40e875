"""How a decode step becomes a graph: one recorder for a GPU and for the tape that stands in for one, one for a rerun.

``graph=`` picks it. ``"tape"`` records kernels on a CPU as a GPU would, and refuses what a GPU refuses. ``"rerun"`` is
the simplest emulation there is: it records nothing and runs the Python step again, on the capture-time batch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol

import torch

from onelaunch.attention import BACKENDS
from onelaunch.padding import capture_sizes, default_ceiling

Step = Callable[[], None]
GraphChoice = Literal["auto", "tape", "rerun", "off"]
GraphMode = Literal["cuda", "tape", "rerun", "off"]
CHOICES: tuple[GraphChoice, ...] = ("auto", "tape", "rerun", "off")


class Graph(Protocol):
    """What the runner needs of a graph; ``torch.cuda.CUDAGraph`` has it."""

    def replay(self) -> None: ...
    def reset(self) -> None: ...
    def pool(self) -> Any: ...


class EmulatedGraph:
    """A graph that is none: each replay runs the step again, with the batch of the capture and its fixed buffers.

    A step that reads an input which nobody refreshed goes wrong here as it does on a GPU. What only a recording shows
    it misses: Python still runs, so no value of the host is frozen, no branch is, nothing is refused, and no output
    is overwritten by another graph.
    """

    def __init__(self, step: Step) -> None:
        self._step: Step | None = step

    def replay(self) -> None:
        if self._step is None:
            raise RuntimeError("replay() of a graph after its reset(): there is nothing left to run.")
        self._step()

    def reset(self) -> None:
        self._step = None

    def pool(self) -> None:
        """It has no memory of its own that another graph could share."""
        return None


class Recorder(Protocol):
    """Prepares a step for its recording, and records it."""

    def warm_up(self, step: Step) -> None:
        """Run ``step`` once, so that whatever happens only the first time does not happen in the capture."""

    def record(self, step: Step, pool: Any) -> Graph:
        """Make a graph of ``step`` whose memory lies in ``pool``, or in a new pool where None."""


class CudaRecorder:
    """Records with torch.cuda's API, the GPU's own or the emulator's, on one side stream of ``device`` for all steps.

    Nobody has run it on a GPU yet.
    """

    def __init__(self, mode: GraphMode, device: torch.device) -> None:
        # The same names in both, so this is the code for a GPU, run on whatever there is.
        self.api: Any = import_module("onelaunch.cuda" if mode == "cuda" else "onelaunch.emulator")
        self.device = device  # need not be the current one
        self.stream = self.api.Stream(device)

    def warm_up(self, step: Step) -> None:
        current = self.api.current_stream(self.device)
        self.stream.wait_stream(current)
        with self.api.stream(self.stream):
            step()
        current.wait_stream(self.stream)

    def record(self, step: Step, pool: Any) -> Graph:
        graph: Graph = self.api.CUDAGraph()
        with self.api.graph(graph, pool=pool, stream=self.stream):
            step()
        return graph


class RerunRecorder:
    """Records nothing: keeps the step, to be run again."""

    def warm_up(self, step: Step) -> None:
        step()

    def record(self, step: Step, pool: Any) -> Graph:
        return EmulatedGraph(step)


def make_recorder(mode: GraphMode, device: torch.device) -> Recorder:
    """What records the graphs of ``mode``, which is not "off", on ``device``."""
    return RerunRecorder() if mode == "rerun" else CudaRecorder(mode, device)


@dataclass(frozen=True)
class GraphPlan:
    """What will be recorded, settled before the model is loaded.

    obstacle: why nothing will be although it was asked for; None where nothing stands in the way.
    """

    mode: GraphMode
    sizes: list[int]
    attention_backend: str
    obstacle: str | None = None


def plan_graphs(
    choice: GraphChoice,
    device: torch.device,
    *,
    attention_backend: str,
    cuda_graph_bs: Sequence[int] | None,
    cuda_graph_max_bs: int | None,
    max_running_req: int,
) -> GraphPlan:
    """Settle the arguments of ``LLM`` that speak of graphs, which it explains.

    Raises ValueError for values that mean nothing. What cannot be captured becomes a plan without graphs and a warning.
    """
    _validate(choice, attention_backend, cuda_graph_bs, cuda_graph_max_bs)
    sizes = _sizes(device, cuda_graph_bs, cuda_graph_max_bs, max_running_req)
    mode: GraphMode
    if choice != "auto":
        mode = choice
    elif cuda_graph_bs is None and cuda_graph_max_bs is None:
        mode = "off"  # on a GPU too, until somebody has measured real graphs there
    else:
        mode = "cuda" if device.type == "cuda" else "tape"
    if not sizes:
        mode = "off"
    records = mode in ("cuda", "tape")
    name = attention_backend if attention_backend != "auto" else ("gather" if records else "torch")
    reason = BACKENDS[name].capture_obstacle
    obstacle = None
    if mode == "tape" and device.type == "cuda":
        obstacle = "graph='tape' stands in for a GPU on a CPU, and this is a GPU. Use graph='auto' for real graphs."
    elif records and reason is not None:
        obstacle = (
            f"attention_backend={name!r} cannot be captured: {reason}. Use attention_backend='gather', or "
            "graph='rerun', which records nothing."
        )
    if obstacle is not None:
        warnings.warn(f"no graphs, every step runs eagerly: {obstacle}", stacklevel=3)
        mode = "off"
    return GraphPlan(mode, [] if mode == "off" else sizes, name, obstacle)


def _sizes(device: torch.device, explicit: Sequence[int] | None, ceiling: int | None, most: int) -> list[int]:
    if explicit is not None:
        return sorted(set(explicit))
    if ceiling is None:  # no batch can be larger than ``most``
        free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
        ceiling = min(default_ceiling(free), most)
    return capture_sizes(ceiling)


def _validate(choice: str, attention_backend: str, explicit: Sequence[int] | None, ceiling: int | None) -> None:
    if choice not in CHOICES:
        raise ValueError(f"graph={choice!r} is not known; there is {', '.join(CHOICES)}.")
    if attention_backend != "auto" and attention_backend not in BACKENDS:
        raise ValueError(f"attention_backend={attention_backend!r} is not known; there is {', '.join(BACKENDS)}, auto.")
    if explicit is not None and not all(_is_int(size) and size >= 1 for size in explicit):
        raise ValueError(f"cuda_graph_bs must be batch sizes of at least 1; found {list(explicit)!r}.")
    if ceiling is not None and not (_is_int(ceiling) and ceiling >= 0):
        raise ValueError(f"cuda_graph_max_bs must be a batch size, or 0 for no graphs; found {ceiling!r}.")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
