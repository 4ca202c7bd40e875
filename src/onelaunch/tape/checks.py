"""Which operations and calls break a rule on a GPU: here, because PyTorch's CUDA code reads something back to the host.

What an operation does on a GPU stands in PyTorch's CUDA sources, not in the CPU's. Where the same operation waits with
some arguments and not with others, the arguments decide here as they do there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from onelaunch.tape.rules import CaptureError

if TYPE_CHECKING:
    from torch._ops import OpOverload

# Where a GPU program has a tensor: in host memory, made in this capture, or that it cannot be told.
Origin = Callable[[Tensor], Literal["host", "graph", "unknown"]]

_OPERATORS: dict[str, tuple[str, ...]] = {
    "host-sync": (
        "_local_scalar_dense",
        "is_nonzero",
        "equal",
        "allclose",
        "_linalg_check_errors",
        "linspace",
        "logspace",
        "masked_fill",
        "masked_fill_",
        "index_fill",
        "index_fill_",
        "normal",
        "segment_reduce",
        "searchsorted",
    ),
    "dynamic-shape": (
        "nonzero",
        "argwhere",
        "masked_select",
        "unique_dim",
        "_unique",
        "_unique2",
        "unique_consecutive",
        "unique_dim_consecutive",
        "bincount",
        "repeat_interleave",
        "isin",
        "_to_sparse",
        "_to_sparse_csr",
        "_to_sparse_csc",
        "_to_sparse_bsr",
        "_to_sparse_bsc",
    ),
    "library-sync": (
        "_linalg_svd",
        "_linalg_eigh",
        "_linalg_eigvals",
        "linalg_eig",
        "linalg_eigvals",
        "linalg_lstsq",
        "linalg_matrix_exp",
        "linalg_pinv",
        "cholesky",
        "cholesky_inverse",
        "histc",
    ),
    "host-data": ("_ctc_loss",),  # the lengths, which are Python numbers, are copied to the device
}
_RULE_OF_OPERATOR = {f"aten::{name}": rule for rule, names in _OPERATORS.items() for name in names}

Get = Callable[[str], Any]  # an argument by its name


def _of_numbers(*names: str) -> Callable[[Get], bool]:
    """Whether these arguments are numbers and not tensors: a tensor's would be read with ``.item()``."""
    return lambda get: not any(isinstance(get(name), Tensor) for name in names)


def _few_candidates(get: Get) -> bool:
    """Whether ``isin`` compares all with all, or sorts: then it makes both sides unique first, unless they are."""
    elements, candidates = get("elements"), get("test_elements")
    if not isinstance(elements, Tensor) or not isinstance(candidates, Tensor) or get("assume_unique"):
        return True
    return bool(candidates.numel() < 10.0 * elements.numel() ** 0.145)


# With these arguments the operation does not wait.
_HARMLESS: dict[str, Callable[[Get], bool]] = {
    "_local_scalar_dense": _of_numbers("self"),
    "is_nonzero": _of_numbers("self"),
    "linspace": _of_numbers("start", "end"),
    "logspace": _of_numbers("start", "end"),
    "masked_fill": _of_numbers("value"),
    "masked_fill_": _of_numbers("value"),
    "index_fill": _of_numbers("value"),
    "index_fill_": _of_numbers("value"),
    "normal": _of_numbers("std"),  # it checks that no deviation is negative
    "segment_reduce": lambda get: get("lengths") is None or get("unsafe"),
    "searchsorted": lambda get: get("sorter") is None or get("sorter").numel() == 0,  # it checks their range
    "bincount": lambda get: get("self").numel() == 0,
    "repeat_interleave": lambda get: get("output_size") is not None,
    "isin": _few_candidates,
    "_linalg_svd": lambda get: get("A").numel() == 0,
    "_linalg_eigh": lambda get: get("A").numel() == 0,
    "linalg_pinv": lambda get: get("self").numel() == 0,
    "cholesky": lambda get: get("self").numel() == 0,
    "linalg_matrix_exp": lambda get: get("self").size(-1) <= 1,
    "histc": lambda get: get("min") != get("max") or get("self").numel() == 0,  # else the bounds come from the data
}
_HARMLESS = {f"aten::{name}": test for name, test in _HARMLESS.items()}
_INDEXING = ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")


def check_operator(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], origin: Origin) -> None:
    """Raise CaptureError if a capture refuses this ATen operation with these arguments."""
    name = op._schema.name
    rule = _RULE_OF_OPERATOR.get(name)
    if rule is not None:

        def get(wanted: str) -> Any:
            for at, argument in enumerate(op._schema.arguments):
                if argument.name == wanted:
                    value = args[at] if at < len(args) else kwargs.get(wanted, argument.default_value)
                    # What is in host memory may be read there: a number like any other.
                    return 0.0 if isinstance(value, Tensor) and origin(value) == "host" else value
            return None

        harmless = _HARMLESS.get(name)
        if harmless is None or not harmless(get):
            subject = next((arg for arg in args if isinstance(arg, Tensor)), None)
            raise CaptureError(rule, _spoken(name), subject)
    elif name in _INDEXING:
        for index in args[1]:
            mask = index is not None and index.dtype in (torch.bool, torch.uint8)
            if mask and (name == "aten::index" or not _is_one_number(args[2], origin)):
                raise CaptureError("dynamic-shape", "indexing with a boolean mask", index)
    elif name in ("aten::lift_fresh", "aten::lift_fresh_copy") and args[0].dim() > 0:
        raise CaptureError("host-data", "a tensor from host data", args[0])
    elif name == "aten::copy_" and origin(args[1]) == "host" and origin(args[0]) != "host":
        # Also what `x[0] = 2.0` becomes where x[0] is one number; a slice or a row is filled with it on the device.
        raise CaptureError("host-data", "copying a number from host memory", args[0])


def _is_one_number(value: Tensor, origin: Origin) -> bool:
    """Whether ``x[mask] = value`` is a masked_fill: with a number, which is a tensor in host memory by now."""
    return value.dim() == 0 and origin(value) != "graph"


def _spoken(name: str) -> str:
    if name == "aten::_local_scalar_dense":
        return ".item()"
    return name.removeprefix("aten::").strip("_") + "()"


_METHODS: dict[Callable[..., Any], tuple[str, str]] = {
    Tensor.item: ("host-sync", ".item()"),
    Tensor.__bool__: ("host-sync", "bool()"),
    Tensor.__int__: ("host-sync", "int()"),
    Tensor.__float__: ("host-sync", "float()"),
    Tensor.__index__: ("host-sync", "use as an index"),
    Tensor.__repr__: ("host-sync", "printing"),
    Tensor.__contains__: ("host-sync", "`in`"),
    Tensor.cpu: ("host-copy", ".cpu()"),
    Tensor.tolist: ("host-copy", ".tolist()"),
    Tensor.numpy: ("host-numpy", ".numpy()"),
    Tensor.__array__: ("host-numpy", "conversion to numpy"),
}
_ONE_NUMBER = (Tensor.item, Tensor.__bool__, Tensor.__int__, Tensor.__float__, Tensor.__index__)
# What these take as their second argument must be in host memory: they look at it there, and that is allowed.
ON_HOST_BY_CONTRACT = (torch.tensor_split, Tensor.tensor_split)
_FROM_HOST = {torch.tensor: "torch.tensor", torch.as_tensor: "torch.as_tensor", torch.asarray: "torch.asarray"}


def _fails_anyway(function: Callable[..., Any], tensor: Tensor) -> bool:
    """Whether PyTorch refuses to make one number of this tensor before it looks at it; it tries when it resolves an
    overload."""
    if function is Tensor.__index__ and (tensor.is_floating_point() or tensor.is_complex()):
        return True
    return tensor.numel() != 1 and function in _ONE_NUMBER


def _names_the_device(target: Any, origin: Origin) -> bool:
    """Whether ``.to(target)`` moves there what is in host memory. A ``torch.device`` is taken from some tensor."""
    if isinstance(target, Tensor):
        return origin(target) != "host"
    return isinstance(target, torch.device) or (isinstance(target, str) and target != "cpu")


def check_function(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], origin: Origin) -> None:
    """Raise CaptureError if a capture refuses this host-side call. Some never become an ATen operation on a CPU."""
    try:
        found = _METHODS.get(function)
        name = _FROM_HOST.get(function)
    except TypeError:  # not hashable
        return
    subject = args[0] if args and isinstance(args[0], Tensor) else None
    if found is not None and (subject is None or (origin(subject) != "host" and not _fails_anyway(function, subject))):
        raise CaptureError(*found, subject)
    if function is Tensor.to and subject is not None:
        device = kwargs.get("device", args[1] if len(args) > 1 else None)
        if origin(subject) == "host":
            if _names_the_device(device, origin):
                raise CaptureError("host-data", ".to(device)", subject)
        elif isinstance(device, str) and device == "cpu":
            raise CaptureError("host-copy", ".to('cpu')", subject)
    if function is Tensor.new_tensor:
        raise CaptureError("host-data", ".new_tensor()", subject)
    if name is not None:
        data = args[0] if args else kwargs.get("data", kwargs.get("obj"))
        if isinstance(data, (bool, int, float, complex)):
            # Without a device it stays in host memory, where kernels read it as they do a number.
            if kwargs.get("device") is not None:
                raise CaptureError("host-data", f"{name}({data!r}, device=...)")
        elif not isinstance(data, Tensor):
            raise CaptureError("host-data", f"{name}(host data)")
