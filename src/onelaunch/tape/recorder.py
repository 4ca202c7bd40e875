"""Listens while a step runs, and writes down every kernel: operation, addresses, frozen numbers, line of your code.

Two ears are needed. A ``TorchDispatchMode`` hears every ATen operation. A ``TorchFunctionMode`` hears the calls from
the host that on a CPU never become one, such as ``.tolist()``. A view is no kernel: it computes nothing, so all that is
kept of it is its geometry, in the kernels that use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from onelaunch.tape.pool import Block, Pool, block_of
from onelaunch.tape.rules import CaptureError, check_function, check_operator
from onelaunch.tape.source import user_line
from onelaunch.tape.tape import Buffer, Kernel, Kind, Tape, TensorRef, leaves, replace
from onelaunch.tape.undo import Journal

if TYPE_CHECKING:
    from torch._ops import OpOverload

_OPAQUE: torch.layout = getattr(torch, "_mkldnn")  # noqa: B009 - oneDNN's own layout; the stubs leave it out
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_ALLOCATIONS = frozenset(
    f"aten::{name}"
    for name in ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")
)


class Recorder:
    """One capture. ``start``, run the step in the same thread, ``stop``.

    pool: where results live. stream: returns the number of the current stream, or None where it takes no part in the
    capture; what runs there is not recorded. issued: called with the stream of each kernel recorded. generators: those
    that random operations may use beside PyTorch's default one.
    """

    def __init__(
        self,
        pool: Pool,
        stream: Callable[[], int | None] = lambda: 0,
        issued: Callable[[int], None] = lambda stream: None,
        generators: Iterable[torch.Generator] = (),
    ) -> None:
        self.pool, self.stream, self.issued = pool, stream, issued
        self.invalid = False
        self.kernels: list[Kernel] = []
        self.buffers: list[Buffer] = []
        self.blocks: list[tuple[Buffer, Block]] = []
        self._known: dict[int, tuple[Buffer, Block | None]] = {}  # by storage
        self._opaque: dict[int, Buffer] = {}  # by identity; the buffer keeps the tensor alive
        self._parameters: set[int] = set()  # storages
        self._journal = Journal()
        self._generators = {key_of(g): g for g in (torch.default_generator, *generators)}
        self._states: dict[int, Tensor] = {}
        self._ears = (_Functions(self), _Operations(self))

    def start(self) -> None:
        self.pool.collect()
        for ear in self._ears:
            ear.__enter__()

    def stop(self, failed: bool = False) -> Tape:
        """End the recording and undo its effects. After a failure the tape is of no use."""
        for ear in reversed(self._ears):
            ear.__exit__(None, None, None)
        for key, state in self._states.items():
            self._generators[key].set_state(state)
        self._journal.restore()
        self._known.clear()
        self.pool.collect()
        for buffer, block in self.blocks:
            if block.alive and buffer.freed is None:
                buffer.kind = "output"
                if not failed:
                    hide(buffer, block)
            block.on_free = None
        return Tape(self.kernels, self.buffers, self.pool, [block for _, block in self.blocks if block.hidden])

    def refuse(self, error: CaptureError) -> None:
        self.invalid = True
        raise error

    def hear_function(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call to PyTorch from Python, before it runs."""
        if self.stream() is None:
            return
        try:
            check_function(function, args, kwargs)
        except CaptureError as error:
            self.refuse(error)
        for arg in leaves((args, list(kwargs.values()))):
            if isinstance(arg, nn.Parameter) and arg.layout is torch.strided:
                self._parameters.add(arg.untyped_storage()._cdata)

    def hear_operation(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An ATen operation: run it, record it, and return its result in the pool's memory."""
        stream = self.stream()
        if stream is None:
            return op(*args, **kwargs)
        facts = facts_of(op)
        if facts.composite:  # in inference mode these arrive whole; a GPU sees the kernels that they are made of
            with self._ears[1]:
                return op._op_dk(_COMPOSITE, *args, **kwargs)
        if self.invalid:
            raise CaptureError("invalidated", op.name())
        tensors = [leaf for leaf in leaves((args, list(kwargs.values()))) if isinstance(leaf, Tensor)]
        try:
            check_operator(op, args, kwargs)
            self._check_tensors(op, tensors)
            if facts.random:
                self._check_generators(op, args, kwargs)
        except CaptureError as error:
            self.refuse(error)
        if facts.only_metadata or any(tensor.is_meta for tensor in tensors):
            return op(*args, **kwargs)
        self.pool.collect()
        written = [tensor for tensor in leaves(facts.written(args, kwargs)) if isinstance(tensor, Tensor)]
        for tensor in written:
            self._before_write(op, tensor, args)
        result = op(*args, **kwargs)
        return self._record(op, args, kwargs, tensors, written, result, stream)

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
        moved: dict[int, Tensor] = {}  # by storage: the pool's memory in its place

        def move(tensor: Tensor) -> Tensor:
            self._check_tensors(op, [tensor])
            storage = tensor.untyped_storage()
            if storage._cdata in arguments or tensor.numel() == 0:
                outputs.append(None)
                return tensor
            memory = moved.get(storage._cdata)
            if memory is None:
                memory = moved[storage._cdata] = self._allocate(op, tensor, storage, stream)
            out = torch.empty(0, dtype=tensor.dtype).set_(
                memory.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride()
            )
            outputs.append(self.ref(out))
            return out

        result = replace(result, Tensor, move)
        if (not moved and not written) or op._schema.name in _ALLOCATIONS:
            return result
        to_ref = lambda value: replace(value, Tensor, self.ref)  # noqa: E731
        kernel = Kernel(
            index=len(self.kernels),
            op=op,
            args=to_ref(args),
            kwargs={name: to_ref(value) for name, value in kwargs.items()},
            outputs=tuple(outputs),
            reads=tuple(self.ref(tensor) for tensor in tensors),
            writes=tuple(self.ref(tensor) for tensor in written) + tuple(ref for ref in outputs if ref is not None),
            where=user_line(),
            stream=stream,
        )
        for ref in (*kernel.reads, *kernel.writes):
            buffer = self.buffers[ref.buffer]
            buffer.first_use = kernel.index if buffer.first_use is None else buffer.first_use
            buffer.last_use = kernel.index
        self.kernels.append(kernel)
        self.issued(stream)
        return result

    def ref(self, tensor: Tensor) -> TensorRef:
        """The place of a tensor, whose memory becomes a buffer if it is not one yet."""
        buffer = self.buffer(tensor)
        if buffer.opaque is not None:
            return TensorRef(buffer.index, tensor.dtype, tuple(tensor.size()), (), 0)
        return TensorRef(
            buffer.index,
            tensor.dtype,
            tuple(tensor.size()),
            tensor.stride(),
            int(tensor.storage_offset()),
            tensor.is_conj(),
            tensor.is_neg(),
        )

    def buffer(self, tensor: Tensor) -> Buffer:
        """The buffer that a tensor's memory is; memory from outside becomes one when it is first met."""
        if tensor.layout is not torch.strided:
            buffer = self._opaque.get(id(tensor))
            if buffer is None:
                buffer = self._add("weight", tensor, 0, 0, None, 0)
                buffer.opaque = tensor
                self._opaque[id(tensor)] = buffer
            return buffer
        storage = tensor.untyped_storage()
        known = self._known.get(storage._cdata)
        if known is not None and (known[1] is None or known[1].alive):
            return known[0]
        # Memory of another graph's pool is referred to by its segment, so that this graph does not keep it in use.
        block = block_of(storage)
        kind: Kind = "weight" if isinstance(tensor, nn.Parameter) or storage._cdata in self._parameters else "input"
        if block is None:
            buffer = self._add(kind, tensor, storage.data_ptr(), storage.nbytes(), storage, 0)
        else:
            base = block.segment.memory.untyped_storage()
            buffer = self._add(kind, tensor, block.address, storage.nbytes(), base, block.offset)
            if block.hidden is not None:  # numbers that no replay has made yet: show true ones while this capture runs
                memory, true = block.hidden
                self._journal.save_whole(memory)
                memory.copy_(true)
        self._known[storage._cdata] = (buffer, block)
        return buffer

    def _add(
        self, kind: Kind, tensor: Tensor, address: int, nbytes: int, storage: torch.UntypedStorage | None, base: int
    ) -> Buffer:
        shape = tuple(tensor.size())
        buffer = Buffer(len(self.buffers), kind, address, nbytes, tensor.dtype, shape, storage, base)
        self.buffers.append(buffer)
        return buffer

    def _allocate(self, op: OpOverload, tensor: Tensor, storage: torch.UntypedStorage, stream: int) -> Tensor:
        """Pool memory (uint8) with the content of a fresh result."""
        block, memory = self.pool.allocate(storage.nbytes(), stream)
        if op._schema.name not in _ALLOCATIONS:
            memory.copy_(torch.empty(0, dtype=torch.uint8).set_(storage))
        elif not tensor.dtype.is_floating_point:
            memory.zero_()  # what was there before may be used as an index while the capture runs
        base = block.segment.memory.untyped_storage()
        buffer = self._add("intermediate", tensor, block.address, storage.nbytes(), base, block.offset)

        def freed() -> None:
            buffer.freed = len(self.kernels)

        block.on_free = freed
        self.blocks.append((buffer, block))
        self._known[memory.untyped_storage()._cdata] = (buffer, block)
        return memory

    def _before_write(self, op: OpOverload, tensor: Tensor, args: tuple[Any, ...]) -> None:
        if tensor.layout is not torch.strided:
            self.refuse(
                CaptureError("not-emulated", op.name(), tensor, "it writes to memory in a library's own layout")
            )
        buffer = self.buffer(tensor)
        if buffer.outside:
            buffer.kind = "state"
            if tensor.numel():
                self._journal.save(op, buffer.tensor(self.ref(tensor)), args)

    def _check_tensors(self, op: OpOverload, tensors: list[Tensor]) -> None:
        for tensor in tensors:
            if tensor.layout is not torch.strided and tensor.layout is not _OPAQUE:
                self.refuse(CaptureError("not-emulated", op.name(), tensor, f"its layout is {tensor.layout}"))

    def _check_generators(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        used = [leaf for leaf in leaves((args, list(kwargs.values()))) if isinstance(leaf, torch.Generator)]
        for generator in used or [torch.default_generator]:
            key = key_of(generator)
            if key not in self._generators:
                raise CaptureError("unregistered-rng", op.name())
            if key not in self._states:
                self._states[key] = self._generators[key].get_state()


def key_of(generator: torch.Generator) -> int:
    """Identity of a generator: the objects that arrive with an operation are only wrappers."""
    return int(generator._cdata)  # type: ignore[attr-defined]  # missing in the stubs


def hide(buffer: Buffer, block: Block) -> None:
    """Fill an output with garbage until its graph is replayed: NaN, or the lowest number that the type has.

    Whole numbers may be indices, and a later capture may run with them, so their true values are kept for it.
    """
    dtype = buffer.dtype
    ref = TensorRef(buffer.index, dtype, (buffer.nbytes // dtype.itemsize,), (1,), 0)
    memory = buffer.tensor(ref)
    if dtype.is_floating_point or dtype.is_complex:
        memory.view(torch.uint8).fill_(255)  # all ones is NaN in every floating point format here
        return
    block.hidden = (memory, memory.clone())
    if dtype is torch.bool:
        memory.fill_(True)
    else:
        info = torch.iinfo(dtype)
        memory.fill_(info.min or info.max)


@dataclass(frozen=True)
class Facts:
    """What an operator's declaration says about it."""

    composite: bool  # nothing but other operations
    only_metadata: bool  # changes a tensor's geometry in place
    random: bool
    write_at: tuple[tuple[int, str], ...]  # position and name of the arguments that it writes

    def written(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        return [args[at] if at < len(args) else kwargs.get(name) for at, name in self.write_at]


@cache
def facts_of(op: OpOverload) -> Facts:
    """Read an operator's declaration, once."""
    name, schema = op.name(), op._schema
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return Facts(
        composite=has_kernel(name, "CompositeImplicitAutograd") and not has_kernel(name, "CPU"),
        only_metadata=torch.Tag.inplace_view in op.tags or schema.name in ("aten::set_", "aten::resize_"),
        random=torch.Tag.nondeterministic_seeded in op.tags,
        write_at=tuple(
            (at, argument.name)
            for at, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ),
    )


class _Operations(TorchDispatchMode):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():
            return self.recorder.hear_operation(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.recorder.hear_function(func, args, kwargs)
        return func(*args, **kwargs)
