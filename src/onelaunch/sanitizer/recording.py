"""Records a step for the sanitizer: in a capture that notes every broken rule and goes on, and eagerly, with results.

Both run the step's Python, and a recorder takes back what its kernels wrote outside. So the tape of an eager run says
what eager computes from the present state, and the state stays as it is.
"""

from __future__ import annotations

import threading
import warnings
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from onelaunch import emulator
from onelaunch.graphs import CUDAGraph
from onelaunch.sanitizer.owners import span
from onelaunch.streams import Capture, Stream, captured_stream
from onelaunch.tape import Buffer, CaptureError, Kernel, Pool, Recorder, Tape
from onelaunch.tape.generators import key_of
from onelaunch.tape.operators import facts_of
from onelaunch.tape.source import Source, name_of_memory, user_line
from onelaunch.tape.tape import TensorRef, leaves
from onelaunch.tape.undo import Piece

if TYPE_CHECKING:
    from torch._ops import OpOverload

# After these there is nothing to go on with.
_ENDS = ("not-emulated", "nested-capture", "invalidated")


@dataclass(frozen=True)
class Refusal:
    """A broken rule of capture, without the tensor that it concerns. address: of that tensor's first byte and end."""

    rule: str
    call: str
    name: str | None
    address: tuple[int, int] | None
    where: Source
    why: str
    fix: str
    thread: str | None = None  # its name, where it is not the one that captures


@dataclass(eq=False)
class Recording:
    """What one run of the step was.

    outputs: of each leaf that the step returned, where it lies, or the value itself if it is no tensor. results: its
    content after an eager run. pieces, after: the memory outside that the run wrote, and what it held then. refused:
    the rules that it broke. local_names: what the step's own variables called memory, by address. elsewhere: lines that
    issued work which the capture does not hold.
    """

    tape: Tape = field(init=False)
    outputs: list[TensorRef | Any] = field(default_factory=list)
    results: list[Tensor | Any] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    after: list[Tensor] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    local_names: dict[int, str] = field(default_factory=dict)
    elsewhere: list[tuple[str, Source]] = field(default_factory=list)
    returned: Any = None
    states: list[Tensor] = field(default_factory=list)  # of the generators, afterwards
    prints: list[int] | None = None  # of each kernel's results, where they were asked for

    def forget(self) -> None:
        """Let go of all memory, so that it is nobody's but its owners'."""
        self.pieces, self.after = [], []
        for buffer in self.tape.buffers:
            buffer.storage = None


class _Recorder(Recorder):
    """Notes what a capture refuses and goes on."""

    def __init__(self, into: Recording, pool: Pool, generators: Iterable[torch.Generator], **kwargs: Any) -> None:
        super().__init__(pool, generators=generators, meet=self._meet, **kwargs)
        self.into, self._thread = into, threading.get_ident()
        self._strangers: dict[int, tuple[torch.Generator, Tensor]] = {}

    def refuse(self, error: CaptureError) -> None:
        if error.rule in _ENDS and error.call != "set_state()":
            super().refuse(error)
        here = threading.get_ident() == self._thread
        self.into.refused.append(without_tensor(error, None if here else threading.current_thread().name))

    def check_seeds(self) -> None:
        try:
            super().check_seeds()
        except CaptureError as error:
            self.refuse(error)
            self.generators.note_drawn()

    def hear_operation(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.stream() is None and computes(op):
            self.into.elsewhere.append((op.name(), user_line()))
        return super().hear_operation(op, args, kwargs)

    def _record(self, *args: Any) -> Any:
        before = len(self.kernels)
        result = super()._record(*args)
        if self.into.prints is not None and len(self.kernels) > before:
            self.into.prints.append(fingerprint(self.kernels[-1], self._tensor))
        return result

    def _tensor(self, ref: TensorRef) -> Tensor:
        return self.memory.buffers[ref.buffer].tensor(ref)

    def finish(self) -> None:
        into, memory = self.into, self.memory
        for leaf in pytree.tree_leaves(into.returned):
            if isinstance(leaf, Tensor) and leaf.layout is torch.strided:
                into.outputs.append(memory.ref(leaf.detach()))
                into.results.append(leaf.detach().clone())
            else:
                into.outputs.append(leaf)
                into.results.append(leaf)
        into.returned = None
        into.pieces, into.after = list(memory.journal.pieces), memory.journal.values()
        into.states = [generator.get_state() for generator in self.generators]
        for generator, state in self._strangers.values():
            generator.set_state(state)

    def check_generators(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for leaf in leaves((args, list(kwargs.values()))):
            if isinstance(leaf, torch.Generator) and leaf not in self.generators:
                self._strangers.setdefault(key_of(leaf), (leaf, leaf.get_state()))
        super().check_generators(op, args, kwargs)

    def _meet(self, buffer: Buffer, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        name = name_of_memory(storage)
        if name is not None:
            self.into.local_names[storage.data_ptr()] = name


class _Graph(CUDAGraph):
    """A graph that is recorded to the end whatever the step does. Work that was not joined becomes a refusal."""

    def __init__(self, into: Recording, generators: Iterable[torch.Generator]) -> None:
        super().__init__(keep_graph=True)
        self._into = into
        self._generators = list(generators)

    def _make_recorder(self, pool: Pool, capture: Capture, meet: Any) -> Recorder:
        return _Recorder(self._into, pool, self._generators, stream=captured_stream, issued=capture.issue)

    def capture_end(self) -> None:
        capture = self._capture
        if capture is not None and capture.recorder is not None:
            loose = capture.unjoined()
            if loose:
                error = CaptureError("unjoined-stream", "the end of the capture")
                error.where = capture.recorder.kernels[loose[0]].where
                if all(refusal.rule != "isolation" for refusal in self._into.refused):  # else the wait was tried
                    self._into.refused.append(without_tensor(error))
                capture.wait(capture.origin.stream_id, frozenset(loose))
        super().capture_end()


def without_tensor(error: CaptureError, thread: str | None = None) -> Refusal:
    """What is kept of an error, which would keep the tensor alive. thread: that met it, if another captures."""
    plain = error.tensor is not None and error.tensor.layout is torch.strided
    address = span(error.tensor) if plain and error.tensor is not None else None
    return Refusal(error.rule, error.call, error.name, address, error.where, error.why, error.fix, thread)


def capture(step: Callable[[], Any], generators: Iterable[torch.Generator]) -> Recording:
    """Record ``step`` as a graph does, in a pool of its own."""
    made = Recording()
    graph = _Graph(made, generators)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The CUDA Graph is empty")
        with emulator.graph(graph, stream=Stream()):
            made.returned = step()
    assert graph.tape is not None
    made.tape = graph.tape
    made.pieces, made.after = [], []  # they hold the memory outside, which has to be free to go
    return made


def run_eagerly(
    step: Callable[[], Any],
    generators: Iterable[torch.Generator],
    pool: Pool | None = None,
    prints: bool = False,
) -> Recording:
    """Run ``step`` as plain Python, keep what it computed, and take back what it wrote. No capture is under way.

    prints: keep a fingerprint of each kernel's results too.
    """
    made = Recording(prints=[] if prints else None)
    recorder = _Recorder(made, Pool() if pool is None else pool, generators)
    recorder.start()
    try:
        made.returned = step()
    except BaseException:
        recorder.stop(failed=True)
        raise
    made.tape = recorder.stop()
    return made


def fingerprint(kernel: Kernel, tensor: Callable[[TensorRef], Tensor]) -> int:
    """A number that tells the bits of a kernel's results from others."""
    value = 0
    for ref in kernel.writes:
        plain = tensor(ref).resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
        value = zlib.crc32(plain.numpy().tobytes(), value)
    return value


def computes(op: OpOverload) -> bool:
    """Whether an operation is work: no view, no allocation, no question after a shape."""
    facts = facts_of(op)
    if facts.only_metadata or facts.allocates or facts.lifts or facts.composite or op.namespace == "profiler":
        return False
    returns = op._schema.returns
    view = any(result.alias_info is not None and not result.alias_info.is_write for result in returns)
    return not view and str(op.name()) not in ("aten::detach", "aten::_local_scalar_dense")


class CountWork(TorchDispatchMode):
    """Counts the operations that are work. elsewhere: a device that is not the CPU, on which some of it is."""

    elsewhere: torch.device | None = None

    def __init__(self) -> None:
        super().__init__()
        self.kernels = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.kernels += computes(func)
        result = func(*args, **(kwargs or {}))
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.device.type != "cpu":
                self.elsewhere = leaf.device
        return result
