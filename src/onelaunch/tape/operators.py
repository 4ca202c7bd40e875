"""What PyTorch declares of an operator: what it is made of, what it writes, whether it draws random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch._ops import OpOverload

_ALLOCATIONS = frozenset(
    f"aten::{name}"
    for name in ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")
)
# Batch norm updates its running statistics in training, which these declarations do not say.
_STATISTICS_UNDECLARED = ("aten::native_batch_norm", "aten::cudnn_batch_norm")


@dataclass(frozen=True)
class Facts:
    """What an operator's declaration says about it."""

    composite: bool  # nothing but other operations
    only_metadata: bool  # changes a tensor's geometry in place, or asks for it
    allocates: bool  # makes memory and computes nothing
    lifts: bool  # makes a tensor of a number that the host holds
    random: bool
    write_at: tuple[tuple[int, str], ...]  # position and name of the arguments that it writes
    updates_statistics: bool  # writes ``running_mean`` and ``running_var``, the arguments before ``training``, too

    def written(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        found = [args[at] if at < len(args) else kwargs.get(name) for at, name in self.write_at]
        if self.updates_statistics and args[5]:
            found += args[3:5]
        return found


@cache
def facts_of(op: OpOverload) -> Facts:
    """Read an operator's declaration, once."""
    name, schema = op.name(), op._schema
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    asks = op.namespace == "prim"  # a FakeTensor is asked for its device in this way, and the dispatcher knows nothing
    return Facts(
        composite=not asks and has_kernel(name, "CompositeImplicitAutograd") and not has_kernel(name, "CPU"),
        only_metadata=asks or torch.Tag.inplace_view in op.tags or schema.name in ("aten::set_", "aten::resize_"),
        allocates=schema.name in _ALLOCATIONS,
        lifts=schema.name in ("aten::lift_fresh", "aten::lift_fresh_copy", "aten::lift"),
        random=torch.Tag.nondeterministic_seeded in op.tags,
        write_at=tuple(
            (at, argument.name)
            for at, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ),
        updates_statistics=schema.name in _STATISTICS_UNDECLARED,
    )


def run_composite(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator as the operations that it is made of."""
    return op._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
