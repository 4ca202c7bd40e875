"""``make_graphed_callables``: modules and functions whose forward and backward are replays, for training loops.

Part of the emulated ``torch.cuda``. One autograd node stands for a whole callable: its forward copies the arguments
into the fixed inputs and replays one graph, its backward copies the gradients and replays another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast, overload

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from onelaunch.capturing import graph
from onelaunch.graphs import CUDAGraph
from onelaunch.pools import graph_pool_handle
from onelaunch.streams import Stream, stream, synchronize

ModuleOrCallable = nn.Module | Callable[..., object]


@dataclass(eq=False)
class Graphed:
    """One callable and its two graphs.

    surface: the fixed inputs that gradients may be asked for, its sample arguments and then its parameters. outputs:
    the forward graph's, flat, and spec how they nest. grad_outputs: fixed tensors for the gradients that come in, None
    for outputs without. grad_inputs: what the backward graph makes, one for each of surface.
    """

    function: ModuleOrCallable
    args: tuple[Any, ...]
    flat_args: tuple[Tensor, ...]
    forward_graph: CUDAGraph
    backward_graph: CUDAGraph
    outputs: tuple[Any, ...] = ()
    spec: pytree.TreeSpec | None = None
    grad_outputs: tuple[Tensor | None, ...] = ()
    grad_inputs: tuple[Tensor | None, ...] = ()

    def __post_init__(self) -> None:
        parameters = self.function.parameters() if isinstance(self.function, nn.Module) else ()
        self.parameters = tuple(parameters)
        self.surface = self.flat_args + self.parameters
        self.with_grad = tuple(tensor for tensor in self.surface if tensor.requires_grad)


@overload
def make_graphed_callables(
    callables: ModuleOrCallable,
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
) -> ModuleOrCallable: ...


@overload
def make_graphed_callables(
    callables: tuple[ModuleOrCallable, ...],
    sample_args: tuple[tuple[Any, ...], ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
) -> tuple[ModuleOrCallable, ...]: ...


def make_graphed_callables(
    callables: ModuleOrCallable | tuple[ModuleOrCallable, ...],
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
) -> ModuleOrCallable | tuple[ModuleOrCallable, ...]:
    """Graphed versions of ``callables``, each a drop-in for its original in a training loop.

    sample_args: the arguments of a callable, any nest of tensors, with ``requires_grad`` as in real use; a tuple of
    these for a tuple of callables, which must be given in the order in which they will run. allow_unused_input: let
    arguments have no influence on the result. pool: memory to share; all graphs made here share one.

    A module keeps its identity and gets a new ``forward``, which runs the original where ``training`` is not what it
    was here. A result is overwritten by the next call. Gradients of gradients are not supported.

    Raises AssertionError for a module with hooks or trainable buffers and for arguments that are no tensors, and
    RuntimeError under autocast with its cache, as torch does.
    """
    autocast = torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")
    if autocast and torch.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    several = isinstance(callables, tuple)
    functions = cast("tuple[ModuleOrCallable, ...]", callables if several else (callables,))
    arguments = sample_args if several else (sample_args,)
    if len(functions) != len(arguments):
        raise ValueError(
            f"make_graphed_callables got {len(functions)} callables and arguments for {len(arguments)}: pass one tuple "
            "of sample arguments for each callable."
        )
    for function in functions:
        _check_module(function)
    works = []
    for function, args in zip(functions, arguments, strict=True):
        flat = tuple(pytree.arg_tree_leaves(*args))
        if not all(isinstance(arg, Tensor) for arg in flat):
            kinds = sorted({type(arg).__name__ for arg in flat if not isinstance(arg, Tensor)})
            raise AssertionError(
                "In the beta API, sample_args for each callable must contain only Tensors. Other types are not "
                f"allowed. Found {', '.join(kinds)}: bind it with functools.partial or in the module."
            )
        works.append(Graphed(function, args, flat, CUDAGraph(), CUDAGraph()))
    memory = graph_pool_handle() if pool is None else pool

    synchronize()
    with stream(Stream()):
        for work in works:
            for _ in range(num_warmup_iters):
                _run_both(work, allow_unused_input)
    synchronize()

    # In the order in which they will run, so that memory which one frees may serve the next.
    for work in works:
        _capture_forward(work, memory)
    for work in reversed(works):
        _capture_backward(work, memory, allow_unused_input)
    results = tuple(_install(work) for work in works)
    return results if several else results[0]


def _check_module(function: ModuleOrCallable) -> None:
    if not isinstance(function, nn.Module):
        return
    if function._backward_hooks or function._forward_hooks or function._forward_pre_hooks:
        raise AssertionError(
            "Modules must not have hooks registered at the time they are passed. However, registering hooks on modules "
            "after passing them through make_graphed_callables is allowed."
        )
    for name, buffer in function.named_buffers():
        if buffer.requires_grad:
            raise AssertionError(
                "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only parameters may be "
                f"trainable. All buffers must have ``requires_grad=False``, and {name!r} has not."
            )


def _run_both(work: Graphed, allow_unused: bool) -> None:
    outputs = [out for out in pytree.tree_leaves(work.function(*work.args)) if out.requires_grad]
    if outputs:
        seeds = tuple(torch.empty_like(out) for out in outputs)
        torch.autograd.grad(outputs, work.with_grad, seeds, only_inputs=True, allow_unused=allow_unused)


def _capture_forward(work: Graphed, memory: tuple[int, int]) -> None:
    with graph(work.forward_graph, pool=memory):
        result = work.function(*work.args)
    outputs, work.spec = pytree.tree_flatten(result)
    work.outputs = tuple(outputs)


def _capture_backward(work: Graphed, memory: tuple[int, int], allow_unused: bool) -> None:
    work.grad_outputs = tuple(torch.empty_like(out) if out.requires_grad else None for out in work.outputs)
    outputs = tuple(out for out in work.outputs if out.requires_grad)
    work.grad_inputs = (None,) * len(work.surface)
    if not outputs:
        return
    seeds = tuple(seed for seed in work.grad_outputs if seed is not None)
    with graph(work.backward_graph, pool=memory):
        made = iter(torch.autograd.grad(outputs, work.with_grad, seeds, only_inputs=True, allow_unused=allow_unused))
    work.grad_inputs = tuple(next(made) if tensor.requires_grad else None for tensor in work.surface)


def _install(work: Graphed) -> ModuleOrCallable:
    """What the caller gets: a function, or the module with a new ``forward``."""
    node = _autograd_node(work)

    def graphed(*args: Any) -> Any:
        flat = pytree.arg_tree_leaves(*args)
        if len(flat) != len(work.flat_args):
            raise TypeError(
                f"a graphed callable was called with {len(flat)} tensors and recorded with {len(work.flat_args)}: pass "
                "its arguments in the order and nesting of sample_args."
            )
        assert work.spec is not None
        outputs = node.apply(*flat, *work.parameters)
        return pytree.tree_unflatten(outputs, work.spec)

    module = work.function
    if not isinstance(module, nn.Module):
        return graphed
    original, training = module.forward, module.training

    def forward(*args: Any, **kwargs: Any) -> Any:
        return graphed(*args, **kwargs) if module.training == training else original(*args, **kwargs)

    module.forward = forward
    return module


def _autograd_node(work: Graphed) -> type[torch.autograd.Function]:
    class Node(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Tensor) -> tuple[Any, ...]:
            for fixed, given in zip(work.flat_args, inputs, strict=False):
                _refill(fixed, given)
            work.forward_graph.replay()
            return tuple(out.detach() for out in work.outputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
            for fixed, given in zip(work.grad_outputs, grads, strict=True):
                if fixed is not None:
                    _refill(fixed, given)
            work.backward_graph.replay()
            return tuple(grad if grad is None else grad.detach() for grad in work.grad_inputs)

    return Node


def _refill(fixed: Tensor, given: Tensor) -> None:
    if fixed.data_ptr() != given.data_ptr():
        fixed.copy_(given)
