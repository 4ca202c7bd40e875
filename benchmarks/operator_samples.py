"""Samples of PyTorch's own operator database: for each operator what it may be called with, and fresh values for it.

Its tests draw their inputs from there, and so each operator's oddities are in it: empty tensors, expanded ones, lists
of tensors, numbers in a tensor's place.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.testing._internal import common_methods_invocations as database
from torch.testing._internal.common_utils import set_rng_seed
from torch.utils._pytree import tree_leaves

SEED = 42  # of what an operator draws


@dataclass
class Sample:
    """Arguments of one call. args: positional, the operator's main input first. broadcasts: the result is larger."""

    args: list[Any]
    kwargs: dict[str, Any] = field(default_factory=dict)
    broadcasts: bool = False

    def tensors(self) -> list[Tensor]:
        return [leaf for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Tensor)]

    @property
    def is_empty(self) -> bool:
        """Whether one of its tensors has no elements."""
        return any(tensor.numel() == 0 for tensor in self.tensors())

    def memory(self) -> list[torch.UntypedStorage]:
        """What its tensors stand on. An operator may give them another shape, and it stays that."""
        return [tensor.untyped_storage() for tensor in self.tensors() if tensor.layout is torch.strided]

    def copy(self) -> Sample:
        """The same values with the same strides elsewhere; what shared memory does so again."""
        sparse = {id(each): each.clone() for each in self.tensors() if each.layout is not torch.strided}
        return copy.deepcopy(self, dict(sparse))

    def fill(self, other: Sample) -> int:
        """Copy the values of ``other``'s tensors into this one's memory. Returns how many of the tensors changed.

        Tensors of another shape are left as they are: a few samples have random sizes.
        """
        changed = 0
        for mine, its in zip(self.tensors(), other.tensors(), strict=False):
            plain = mine.layout is torch.strided
            if plain and geometry(mine) == geometry(its) and not same_bits(mine, its):
                mine.untyped_storage().copy_(its.untyped_storage())
                changed += 1
        return changed


def operators() -> list[Any]:
    """Every entry of the database."""
    return list(database.op_db)


def name_of(op: Any) -> str:
    """An entry's name, with what tells it from others of that name: ``linalg.norm``, ``std (unbiased)``."""
    return f"{op.name} ({op.variant_test_name})" if op.variant_test_name else str(op.name)


def draw(op: Any, dtype: torch.dtype, seed: int = 0) -> Iterator[Sample]:
    """The samples of an operator, with values from ``seed``; each is made when it is asked for."""
    set_rng_seed(seed)
    # Not by way of ``op.sample_inputs``: that looks through the whole stack for the test that asks, which takes long.
    for each in op.sample_inputs_func(op, "cpu", dtype, False):
        yield Sample([each.input, *each.args], dict(each.kwargs), bool(each.broadcasts_input))


def first_pair(op: Any, dtype: torch.dtype) -> tuple[Sample, Sample] | None:
    """The first sample whose tensors have elements, else the first, with one of other values. None if there is none."""
    found: dict[int, Sample] = {}
    for at, sample in enumerate(draw(op, dtype)):
        if not found or not sample.is_empty:
            found = {at: sample}
        if not sample.is_empty:
            break
    for at, sample in found.items():
        return sample, next(islice(draw(op, dtype, seed=1), at, None))
    return None


@contextmanager
def seeds_from_outside() -> Iterator[None]:
    """Within it operators that draw do not set the generator themselves, in Python, which a replay would not repeat."""
    with mock.patch.object(database, "wrapper_set_seed", lambda op, *args, **kwargs: op(*args, **kwargs)):
        yield


def geometry(tensor: Tensor) -> tuple[Any, ...]:
    """What has to be the same for one tensor's memory to be copied into another's."""
    if tensor.layout is not torch.strided:
        return (tensor.dtype, tensor.size(), tensor.layout)
    return (
        tensor.dtype,
        tensor.size(),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.untyped_storage().nbytes(),
        tensor.is_conj(),
        tensor.is_neg(),
    )


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors agree in type, shape and every bit, so that NaN equals NaN and 0 is not -0."""
    if a.dtype != b.dtype or a.size() != b.size() or a.layout is not b.layout:
        return False
    return torch.equal(_bytes(a), _bytes(b))


def _bytes(tensor: Tensor) -> Tensor:
    plain = tensor.detach() if tensor.layout is torch.strided else tensor.detach().to_dense()
    plain = plain.resolve_conj().resolve_neg().contiguous()
    return plain.as_strided((plain.numel(),), (1,)).view(torch.uint8)  # a lone element may have any stride
