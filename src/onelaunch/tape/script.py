"""Plays a tape without Python and without a compiler: its calls become a TorchScript graph, which PyTorch interprets.

Built by hand from the tape, not traced: every call is one node, every piece of memory enters through one list, and
nothing is optimized, so each kernel computes exactly what it did. A call that TorchScript cannot
express is made from Python, between two pieces of the graph; ``python_calls`` counts them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from onelaunch.tape.lowering import Call, lower, once, positional
from onelaunch.tape.replay import Binder, plain_modes, python_call
from onelaunch.tape.tape import Tape, TensorRef

_MEMORY_FORMATS = {
    torch.contiguous_format: 0,
    torch.preserve_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
}
_TENSORS = torch._C.ListType(torch._C.TensorType.get())


class Inexpressible(Exception):
    """A call that has no form in a TorchScript graph."""


class ScriptExecutor:
    """Issues the kernels from TorchScript's interpreter."""

    name = "script"

    def __init__(self, tape: Tape) -> None:
        bind = Binder(tape)
        self.python_calls = 0
        self._parts: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        piece = Piece(bind)
        for kernel in tape.kernels:
            call = lower(kernel)
            try:
                piece.add(call)
            except Inexpressible:
                self._finish(piece)
                piece = Piece(bind)
                self._parts.append((python_call(call, bind), ()))
                self.python_calls += 1
        self._finish(piece)

    def _finish(self, piece: Piece) -> None:
        if piece.calls:
            self._parts.append((piece.function(), (piece.tensors,)))

    def run(self) -> None:
        with plain_modes(), torch.jit.optimized_execution(False):
            for function, args in self._parts:
                function(*args)


class Piece:
    """Calls one after the other, as a function of the list of the tensors that they use."""

    def __init__(self, bind: Callable[[TensorRef], Tensor]) -> None:
        self.calls = 0
        self.tensors: list[Tensor] = []
        self._bind = bind
        self._graph = torch._C.Graph()
        self._values: dict[int, torch._C.Value] = {}  # by identity of the tensor
        self._constants: dict[tuple[type, str], torch._C.Value] = {}

    def add(self, call: Call) -> None:
        """Append ``call``. Raises Inexpressible where it does not fit, and adds nothing then."""
        if any(once(ref, ref) != ref for _, ref in call.copies):
            raise Inexpressible("its result is repeated in memory")
        schema = call.op._schema
        inputs = [
            self._value(value, argument.type)
            for argument, value in zip(schema.arguments, positional(call), strict=True)
        ]
        node = self._graph.create(schema.name, inputs, len(schema.returns))
        self._graph.insertNode(node)
        understood = node.schema()
        if understood != str(schema):
            node.destroy()
            raise Inexpressible(f"TorchScript takes it for {understood}")
        results = list(node.outputs())
        if call.copies and len(results) == 1 and str(schema.returns[0].type) == "List[Tensor]":
            results[0].setType(_TENSORS)
            unpack = self._graph.create("prim::ListUnpack", results, call.returned)
            self._graph.insertNode(unpack)
            results = list(unpack.outputs())
        for n, ref in call.copies:
            self._insert("aten::copy_", [self._tensor(self._bind(ref)), results[n], self._constant(False)])
        self.calls += 1

    def function(self) -> Callable[[list[Tensor]], None]:
        """The calls so far, compiled. It takes ``tensors``."""
        graph = self._graph
        count = len(self.tensors)
        tensors = graph.addInput("tensors")
        tensors.setType(_TENSORS)
        unpack = graph.create("prim::ListUnpack", [tensors], count)
        graph.prependNode(unpack)
        # Tensors as constants would be folded together with what is computed from them.
        for value, element in zip(list(graph.inputs()), list(unpack.outputs()), strict=False):
            value.replaceAllUsesWith(element)
        for _ in range(count):
            graph.eraseInput(0)
        graph.registerOutput(self._constant(None))
        function: Callable[[list[Tensor]], None] = torch._C._create_function_from_graph("tape", graph)
        return function

    def _insert(self, name: str, inputs: list[torch._C.Value]) -> None:
        self._graph.insertNode(self._graph.create(name, inputs, 1))

    def _value(self, value: Any, kind: Any) -> torch._C.Value:
        """``value`` as an input of a node, for an argument of the type ``kind``."""
        if value is None:
            return self._constant(None)
        if isinstance(kind, torch._C.OptionalType):
            kind = kind.getElementType()
        if isinstance(value, (TensorRef, Tensor)):
            return self._tensor(value if isinstance(value, Tensor) else self._bind(value))
        if isinstance(kind, torch._C.ListType):
            if not isinstance(value, (list, tuple)):
                raise Inexpressible("one value in place of a list")
            items = [self._value(item, kind.getElementType()) for item in value]
            node = self._graph.create("prim::ListConstruct", items, 1)
            node.output().setType(kind)
            self._graph.insertNode(node)
            return node.output()
        if isinstance(value, torch.memory_format):
            return self._constant(_MEMORY_FORMATS[value])
        return self._constant(float(value) if isinstance(kind, torch._C.FloatType) else value)

    def _tensor(self, tensor: Tensor) -> torch._C.Value:
        value = self._values.get(id(tensor))
        if value is None:
            value = self._values[id(tensor)] = self._graph.addInput()
            self.tensors.append(tensor)
        return value

    def _constant(self, value: Any) -> torch._C.Value:
        key = (type(value), repr(value))  # 0.0 equals -0.0 and True equals 1, but they differ
        found = self._constants.get(key)
        if found is not None:
            return found
        if value is None:
            node = self._graph.create("prim::Constant", [], 1)
            node.output().setType(torch._C.NoneType.get())
            self._graph.prependNode(node)
            made = node.output()
        else:
            try:
                made = self._graph.insertConstant(value)  # type: ignore[attr-defined]  # the stubs leave it out
            except TypeError as error:
                raise Inexpressible(f"a {type(value).__name__} as a constant") from error
        self._constants[key] = made
        return made
