"""Calls for which PyTorch takes another way on this CPU than on a GPU, put back on the GPU's.

The kernels of a capture should be those of a GPU, and the numbers those of eager PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """On a CPU it looks at the classes on the host; on a GPU only where it has to count them."""
    if num_classes < 1 or tensor.numel() == 0:
        out: Tensor = torch._C._nn.one_hot(tensor, num_classes)
        return out
    return tensor.new_zeros((*tensor.shape, num_classes)).scatter_(-1, tensor.unsqueeze(-1), 1)


def _matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """While something listens to its operations it takes one product for [b, n, k] @ [1, k, m], else one for each."""
    if input.dim() == other.dim() == 3 and other.size(0) == 1 and input.size(0) > 1:
        other = other.expand(input.size(0), -1, -1)
    return torch.matmul(input, other) if out is None else torch.matmul(input, other, out=out)


# By what is called from Python; calls from inside PyTorch's own C++ are not heard.
_INSTEAD: dict[Callable[..., Any], Callable[..., Any]] = {
    torch._C._nn.one_hot: _one_hot,
    torch.matmul: _matmul,
    Tensor.matmul: _matmul,
    Tensor.__matmul__: _matmul,
    Tensor.__rmatmul__: lambda other, input: _matmul(input, other),
}


def instead(function: Callable[..., Any]) -> Callable[..., Any]:
    """What to call for ``function``: in most cases itself."""
    try:
        return _INSTEAD.get(function, function)
    except TypeError:  # not hashable
        return function
