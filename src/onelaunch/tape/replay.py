"""Plays a tape: issues its kernels, one after the other, without running any of the model's Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from onelaunch.tape.lowering import Call, lower, once
from onelaunch.tape.tape import Tape, TensorRef, leaves, replace

# The caller's modes (autograd, autocast, other listeners) were in force when the step was recorded. They are not again.
_CALLERS_MODES = torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradCPU)
for _key in ("AutogradOther", "ADInplaceOrView", "AutocastCPU", "Python", "PythonTLSSnapshot"):
    _CALLERS_MODES = _CALLERS_MODES | torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _key))


class Executor(Protocol):
    """Something that plays one tape. name: which of them it is."""

    @property
    def name(self) -> str: ...

    def run(self) -> None: ...


class plain_modes:
    """Within it, operators do nothing but compute."""

    def __enter__(self) -> None:
        self._entered: list[Any] = []
        for make in (torch.no_grad, torch._C.DisableTorchFunction, partial(_exclude, _CALLERS_MODES)):
            mode = make()
            mode.__enter__()
            self._entered.append(mode)

    def __exit__(self, *error: object) -> None:
        while self._entered:
            self._entered.pop().__exit__(*error)


_exclude = torch._C._ExcludeDispatchKeyGuard


class PythonExecutor:
    """Issues the kernels from a Python loop. It always works."""

    name = "python"

    def __init__(self, tape: Tape) -> None:
        bind = Binder(tape)
        self._calls = [python_call(lower(kernel), bind) for kernel in tape.kernels]

    def run(self) -> None:
        with plain_modes():
            for call in self._calls:
                call()


class Binder:
    """The tensors over a tape's memory, one for each geometry that its kernels use."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._tensors: dict[TensorRef, Tensor] = {}

    def __call__(self, ref: TensorRef) -> Tensor:
        found = self._tensors.get(ref)
        if found is None:
            found = self._tensors[ref] = self._tape.tensor(ref)
        return found


def python_call(call: Call, bind: Callable[[TensorRef], Tensor]) -> Callable[[], Any]:
    """``call`` as a function without arguments."""
    args = replace(call.args, TensorRef, bind)
    kwargs = {name: replace(value, TensorRef, bind) for name, value in call.kwargs.items()}
    if not call.copies:
        return partial(call.op._op, *args, **kwargs)
    copies = [(n, bind(once(ref, ref)), tuple(once(ref, ref).size)) for n, ref in call.copies]
    return partial(_run_and_copy, call.op._op, args, kwargs, copies)


def _run_and_copy(
    op: Callable[..., Any], args: Any, kwargs: dict[str, Any], copies: Sequence[tuple[int, Tensor, tuple[int, ...]]]
) -> None:
    results = [leaf for leaf in leaves(op(*args, **kwargs)) if isinstance(leaf, Tensor)]
    for n, memory, size in copies:
        result = results[n]
        for dim, length in enumerate(size):
            if result.size(dim) != length:
                result = result.narrow(dim, 0, length)
        memory.copy_(result)
