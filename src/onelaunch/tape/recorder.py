"""Listens while a step runs, and writes down every kernel: operation, addresses, frozen numbers, line of your code.

Two ears are needed. A ``TorchDispatchMode`` hears every ATen operation. A ``TorchFunctionMode`` hears the calls from
the host that on a CPU never become one, such as ``.tolist()``. A view is no kernel: it computes nothing, so all that is
kept of it is its geometry, in the kernels that use it.

Python code can tell that somebody listens (``torch.overrides.has_torch_function``), and a few modules then take another
way: ``nn.TransformerEncoderLayer`` leaves its fused kernel aside. What is recorded is that other way.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch._ops import HigherOrderOperator
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from onelaunch.tape.checks import ON_HOST_BY_CONTRACT, check_function, check_operator
from onelaunch.tape.detours import instead
from onelaunch.tape.generators import Generators
from onelaunch.tape.memory import Memory
from onelaunch.tape.operators import facts_of, run_composite
from onelaunch.tape.pool import Pool
from onelaunch.tape.rules import CaptureError
from onelaunch.tape.source import user_line
from onelaunch.tape.tape import Buffer, Kernel, Tape, TensorRef, leaves, replace

if TYPE_CHECKING:
    from torch._ops import OpOverload
    from torch.utils.hooks import RemovableHandle

_OPAQUE: torch.layout = getattr(torch, "_mkldnn")  # noqa: B009 - oneDNN's own layout; the stubs leave it out


class Recorder:
    """One capture. ``start``, run the step in the same thread, ``stop``.

    pool: where results live. stream: returns the number of the current stream, or None where it takes no part in the
    capture; what runs there is not recorded. issued: called with the stream of each kernel recorded. generators: those
    that random operations may use beside PyTorch's default one. meet: called with each buffer that is no pool's memory,
    when the step first uses it.
    """

    def __init__(
        self,
        pool: Pool,
        stream: Callable[[], int | None] = lambda: 0,
        issued: Callable[[int], None] = lambda stream: None,
        generators: Iterable[torch.Generator] = (),
        meet: Callable[[Buffer, Tensor], None] | None = None,
    ) -> None:
        self.pool, self.stream, self.issued = pool, stream, issued
        self.invalid = False
        self.kernels: list[Kernel] = []
        self.memory = Memory(pool, meet)
        self.generators = Generators(generators)
        self._ears = (_Functions(self), _Operations(self))
        self._optimizers: RemovableHandle | None = None
        self._collects = False

    def start(self) -> None:
        # A garbage collection in the middle would free memory at a moment that nobody can foresee, so that two captures
        # of one step would plan it differently. It would also take longer than the recording.
        self._collects = gc.isenabled()
        gc.disable()
        self.pool.collect()
        self.generators.start()
        self._optimizers = register_optimizer_step_pre_hook(self._check_optimizer)
        for ear in self._ears:
            ear.__enter__()

    def stop(self, failed: bool = False) -> Tape:
        """End the recording and undo its effects. After a failure the tape is of no use.

        Raises CaptureError, after the undoing, if the step has set a generator.
        """
        for ear in reversed(self._ears):
            ear.__exit__(None, None, None)
        if self._optimizers is not None:
            self._optimizers.remove()
        if self._collects:
            gc.enable()
        error = None
        try:
            if not failed:
                self.check_seeds()
                self.finish()
        except CaptureError as found:
            error, failed = found, True
        self.generators.restore()
        hidden = self.memory.settle(failed)
        if error is not None:
            raise error
        return Tape(self.kernels, self.memory.buffers, self.pool, hidden, self.memory.shapes_only)

    def finish(self) -> None:
        """Called when the step has run and its effects are not undone yet, for those who want to look at them."""

    def refuse(self, error: CaptureError) -> None:
        """End the capture with ``error``, and mark what was recorded as lost."""
        self.invalid = True
        raise error

    def hear_function(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call to PyTorch from Python, before it runs."""
        if self.stream() is None:
            return
        try:
            check_function(function, args, kwargs, self.memory.origin)
        except CaptureError as error:
            self.refuse(error)
        if function in ON_HOST_BY_CONTRACT:
            for arg in leaves((args[1:], list(kwargs.values()))):
                if isinstance(arg, Tensor):
                    self.memory.note_kind(arg, "constant")

    def hear_operation(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An ATen operation: run it, record it, and return its result in the pool's memory."""
        stream = self.stream()
        if stream is None or op.namespace == "profiler":  # marks for a profiler are no work
            try:
                return op(*args, **kwargs)
            finally:
                if facts_of(op).random:
                    self.generators.note_drawn()
        facts = facts_of(op)
        tensors = [leaf for leaf in leaves((args, list(kwargs.values()))) if isinstance(leaf, Tensor)]
        for tensor in tensors:
            if type(tensor) is not Tensor and isinstance(tensor, nn.Parameter):
                self.memory.note_kind(tensor, "weight")
        if facts.composite:  # in inference mode these arrive whole; a GPU sees the kernels that they are made of
            with self._ears[1]:
                return run_composite(op, args, kwargs)
        if self.invalid:
            raise CaptureError("invalidated", op.name())
        written = [leaf for leaf in leaves(facts.written(args, kwargs)) if isinstance(leaf, Tensor)]
        try:
            check_operator(op, args, kwargs, self.memory.origin)
            check_layouts(op, tensors, written)
            if facts.random:
                self.check_generators(op, args, kwargs)
        except CaptureError as error:
            self.refuse(error)
        if facts.only_metadata or any(tensor.is_meta for tensor in tensors):
            return self._run(op, args, kwargs, written, stream)
        self.pool.collect()
        if tensors and all(self.memory.origin(tensor) == "host" for tensor in tensors):
            return self._run_on_host(op, args, kwargs)
        for tensor in written:
            if self.memory.origin(tensor) == "host":
                detail = "it writes to a number that the host holds, which a replay would not set back"
                self.refuse(CaptureError("not-emulated", op.name(), tensor, detail))
            self.memory.before_write(op, tensor, args)
        for tensor in tensors:
            self.memory.show(tensor)
        result = self._run(op, args, kwargs, written, stream)
        if facts.random:
            self.generators.note_drawn()
        if facts.lifts:  # a number that the host wrote down: there before any kernel runs
            self.memory.note_kind(result, "constant")
            return result
        return self._record(op, args, kwargs, tensors, written, result, stream)

    def _run_on_host(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What is computed from numbers of the host alone is host work: done now, recorded nowhere."""
        result = op(*args, **kwargs)
        for leaf in leaves(result):
            if isinstance(leaf, Tensor):
                self.memory.note_kind(leaf, "constant")
        return result

    def _run(
        self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], written: list[Tensor], stream: int
    ) -> Any:
        before = [(t, t.untyped_storage(), t.untyped_storage().nbytes()) for t in written if not t.is_meta]
        result = op(*args, **kwargs)
        for tensor, storage, nbytes in before:  # `out=` or resize_() may have given it memory, which is this capture's
            if tensor.untyped_storage()._cdata == storage._cdata and storage.nbytes() > nbytes:
                self.memory.move_to_pool(op, tensor, stream)
        return result

    def _record(
        self,
        op: OpOverload,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        tensors: list[Tensor],
        written: list[Tensor],
        result: Any,
        stream: int,
    ) -> Any:
        arguments = {tensor.untyped_storage()._cdata for tensor in tensors if tensor.layout is torch.strided}
        outputs: list[TensorRef | None] = []
        moved: dict[int, torch.UntypedStorage] = {}  # by storage: the pool's memory in its place
        ref = self.memory.ref

        def move(tensor: Tensor) -> Tensor:
            try:
                check_layouts(op, [tensor])
            except CaptureError as error:
                self.refuse(error)
            storage = tensor.untyped_storage()
            if storage._cdata in arguments or tensor.numel() == 0:
                outputs.append(None)
                return tensor
            memory = moved.get(storage._cdata)
            if memory is None:
                memory = moved[storage._cdata] = self.memory.allocate(op, tensor, stream)
            if memory is not storage:
                tensor = torch.empty(0, dtype=tensor.dtype).set_(
                    memory, tensor.storage_offset(), tensor.size(), tensor.stride()
                )
            outputs.append(ref(tensor))
            return tensor

        def read(tensor: Tensor) -> TensorRef:
            reads.append(ref(tensor))
            return reads[-1]

        result = replace(result, Tensor, move)
        if (not moved and not written) or facts_of(op).allocates:
            return result
        reads: list[TensorRef] = []
        kernel = Kernel(
            index=len(self.kernels),
            op=op,
            args=replace(args, Tensor, read),
            kwargs={name: replace(value, Tensor, read) for name, value in kwargs.items()},
            outputs=tuple(outputs),
            reads=tuple(reads),
            writes=tuple(ref(tensor) for tensor in written) + tuple(place for place in outputs if place is not None),
            where=user_line(),
            stream=stream,
        )
        self.memory.note_use(kernel)
        self.kernels.append(kernel)
        self.issued(stream)
        return result

    def check_generators(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise CaptureError where a random operation may not run."""
        self.generators.check_use(op, args, kwargs)
        self.check_seeds()

    def check_seeds(self) -> None:
        """Raise CaptureError if the host has set a generator since the last random operation."""
        self.generators.check_seeds()

    def _check_optimizer(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """torch.optim asks ``torch.cuda`` whether a capture is under way; without a GPU this asks in its place."""
        uncapturable = any(not group.get("capturable", True) for group in optimizer.param_groups)
        if self.stream() is not None and uncapturable:
            self.refuse(CaptureError("uncapturable-optimizer", f"{type(optimizer).__name__}.step()"))


def check_layouts(op: OpOverload, tensors: Iterable[Tensor], written: Iterable[Tensor] = ()) -> None:
    """Raise CaptureError for memory that has no plain addresses, save oneDNN's packed weights, which are only read."""
    for tensor in tensors:
        if tensor.layout is not torch.strided and tensor.layout is not _OPAQUE:
            raise CaptureError("not-emulated", op.name(), tensor, f"its layout is {tensor.layout}")
    for tensor in written:
        if tensor.layout is not torch.strided:
            raise CaptureError("not-emulated", op.name(), tensor, "it writes to memory in a library's own layout")


class _Operations(TorchDispatchMode):
    supports_higher_order_operators = True  # to refuse them in our words

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False, or PyTorch imports torch.compile (2 s) in the middle of the capture, to keep it out of here."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():
            if isinstance(func, HigherOrderOperator):
                self.recorder.refuse(
                    CaptureError("not-emulated", f"torch.{func.name()}()", detail="it takes functions")
                )
            return self.recorder.hear_operation(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.recorder.hear_function(func, args, kwargs)
        return instead(func)(*args, **kwargs)
