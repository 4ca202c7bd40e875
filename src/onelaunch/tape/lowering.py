"""What each recorded kernel becomes at a replay: calls of ATen operators that write into the kernel's own memory.

An operator makes a new tensor for its result; a graph must put it where the recorded one was. So a kernel becomes the
operator's variant with ``out`` where there is one. Where not, the operator runs as it is and its result is copied,
which costs a copy and is always right. All executors issue the same calls, so all give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from onelaunch.tape.tape import Kernel, TensorRef

if TYPE_CHECKING:
    from torch._ops import OpOverload

_FILLS = {"aten::zeros": 0, "aten::zeros_like": 0, "aten::new_zeros": 0, "aten::ones": 1, "aten::ones_like": 1}
_FILLS |= {"aten::new_ones": 1, "aten::_efficientzerotensor": 0}
_FILLS_WITH_ARGUMENT = {"aten::full": 1, "aten::full_like": 1, "aten::new_full": 2, "aten::scalar_tensor": 0}
_COPIES = frozenset(("aten::clone", "aten::_to_copy"))
# Their variant with `out` writes to more than that (fft), not to all of it (qr leaves what is below the diagonal), or
# makes it larger for a while (the loss of each element, before their mean), over what lies behind it in the pool.
_LOSSES = ("binary_cross_entropy", "mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss")
_NO_OUT = frozenset(f"aten::{name}" for name in ("_fft_c2r", "_fft_r2c", "_fft_c2c", "linalg_qr", *_LOSSES))
# With a float32 tensor they use a number as a float32, so it may be one from the start.
_ARITHMETIC = frozenset(("aten::add", "aten::sub", "aten::mul", "aten::div"))


@dataclass(frozen=True)
class Call:
    """One call of an operator.

    args, kwargs: a ``TensorRef`` for each piece of the graph's memory, a tensor for a number in a tensor's place.
    copies: which of the tensors that it returns are copied, and where to. returned: how many it returns.
    """

    op: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    copies: tuple[tuple[int, TensorRef], ...] = ()
    returned: int = 0


def lower(kernel: Kernel) -> Call:
    """The call that performs a kernel into its own memory."""
    op, name = kernel.op, kernel.op._schema.name
    made = [ref for ref in kernel.outputs if ref is not None]
    if made and name in _FILLS:
        return Call(torch.ops.aten.fill_.Scalar, (made[0], _FILLS[name]), {})
    if made and name in _FILLS_WITH_ARGUMENT:
        return Call(torch.ops.aten.fill_.Scalar, (made[0], kernel.args[_FILLS_WITH_ARGUMENT[name]]), {})
    if made and name in _COPIES:
        return Call(torch.ops.aten.copy_.default, (once(made[0], made[0]), once(kernel.args[0], made[0])), {})
    if made and name == "aten::masked_fill" and made[0].dtype.is_floating_point:
        masked = _masked_fill(kernel)
        if masked is not None:
            return masked
    args, kwargs = with_numbers_as_tensors(op, kernel.args, kernel.kwargs)
    if not made:
        return Call(op, args, kwargs)
    found = out_variant(op)
    if found is not None and len(made) == len(kernel.outputs) == len(found[1]):
        variant, names = found
        return Call(variant, args, {**kwargs, **dict(zip(names, made, strict=True))})
    copies = tuple((n, ref) for n, ref in enumerate(kernel.outputs) if ref is not None)
    return Call(op, args, kwargs, copies, len(kernel.outputs))


def _masked_fill(kernel: Kernel) -> Call | None:
    """``masked_fill`` as ``where``, which has a variant with ``out``; None where the two are not the same."""
    tensor, mask, value = positional(Call(kernel.op, kernel.args, kernel.kwargs))
    if mask.dtype is not torch.bool or isinstance(value, TensorRef):
        return None
    number = torch.tensor(value, dtype=tensor.dtype)
    return Call(torch.ops.aten.where.self_out, (mask, number, tensor), {"out": kernel.outputs[0]})


def once(ref: TensorRef, like: TensorRef) -> TensorRef:
    """``ref`` without the repetitions that ``like`` has in its strides: each place is written once."""
    size = tuple(
        1 if stride == 0 and of > 1 else n for n, of, stride in zip(ref.size, like.size, like.stride, strict=True)
    )
    return (
        ref if size == ref.size else TensorRef(ref.buffer, ref.dtype, size, ref.stride, ref.offset, ref.conj, ref.neg)
    )


def positional(call: Call) -> list[Any]:
    """The arguments in the order of the operator's declaration, defaults included."""
    arguments = call.op._schema.arguments
    stack = list(call.args)
    for argument in arguments[len(stack) :]:
        if argument.name in call.kwargs:
            stack.append(call.kwargs[argument.name])
        else:
            stack.append(argument.default_value)
    return stack


@cache
def out_variant(op: OpOverload) -> tuple[OpOverload, tuple[str, ...]] | None:
    """The overload that takes the same arguments and writes to given tensors, with the names of these.

    Variants that PyTorch generated by wrapping the plain operator are left out: they too run and copy.
    """
    schema = op._schema
    if schema.name in _NO_OUT or any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments):
        return None
    wanted = [(a.name, str(a.type)) for a in schema.arguments]
    packet = op.overloadpacket
    for overload in packet.overloads():
        candidate = getattr(packet, overload)
        arguments = candidate._schema.arguments
        outs = tuple(a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write)
        rest = [(a.name, str(a.type)) for a in arguments if a.name not in outs]
        if (
            len(outs) == len(schema.returns) > 0
            and all(a.kwarg_only for a in arguments if a.name in outs)
            and rest == wanted
            and torch.Tag.generated not in candidate.tags
        ):
            return candidate, outs
    return None


def with_numbers_as_tensors(
    op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Numbers that stand where the operator takes a tensor, made into tensors now and not at each replay."""
    places = tensor_places(op)
    single = op._schema.name in _ARITHMETIC and bool(args) and _is_float32(args[0])

    def convert(name: str, value: Any) -> Any:
        if name in places and isinstance(value, (bool, int, float, complex)):
            tensor = wrapped_number(value)
            return tensor.float() if single and isinstance(value, (int, float)) else tensor
        return value

    names = [argument.name for argument in op._schema.arguments]
    return (
        tuple(convert(name, value) for name, value in zip(names, args, strict=False)),
        {name: convert(name, value) for name, value in kwargs.items()},
    )


def _is_float32(value: Any) -> bool:
    return isinstance(value, TensorRef) and value.dtype is torch.float32 and len(value.size) > 0


@cache
def tensor_places(op: OpOverload) -> frozenset[str]:
    """Names of the arguments that are tensors."""
    kinds = ("Tensor", "Optional[Tensor]")
    return frozenset(argument.name for argument in op._schema.arguments if str(argument.type) in kinds)


def wrapped_number(value: complex) -> Tensor:
    """The 0-dim tensor that PyTorch makes of a Python number, which does not take part in type promotion as others do.

    No function returns one, but autograd keeps what a product was computed with.
    """
    with torch.inference_mode(False), torch.enable_grad():
        product = torch.ones((), requires_grad=True) * value
    assert product.grad_fn is not None
    number: Tensor = product.grad_fn._saved_other  # type: ignore[attr-defined]  # made by autograd for this node
    return number
