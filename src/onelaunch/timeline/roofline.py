"""What a kernel costs on a GPU that you don't have: its bytes and operations, and the larger of the two times.

``kernel_costs`` reads a tape. ``onelaunch.timeline.fusion`` lists the kernels of an engine that fuses, from the model's
shapes. Both give ``KernelCost``s, and ``time_us`` prices one on a ``Hardware``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from onelaunch.timeline.hardware import Hardware, Rate, hardware

if TYPE_CHECKING:
    import torch

    from onelaunch.tape import Kernel, Tape, TensorRef

Kind = Literal["matmul", "attention", "gather", "elementwise", "all_reduce"]


@dataclass(frozen=True)
class KernelCost:
    """What one kernel moves and computes.

    bytes: read from and written to memory, each place once. operations: multiplications and additions. rate: which of
    the GPU's rates they run at. extra_us: time that depends on neither, such as the handshake of an all-reduce.
    """

    name: str
    kind: Kind
    bytes: int
    operations: int
    rate: Rate
    extra_us: float = 0.0

    @property
    def intensity(self) -> float:
        """Operations for each byte: where the kernel stands on the roofline."""
        return self.operations / self.bytes if self.bytes else math.inf


@dataclass(frozen=True)
class Efficiency:
    """How far a kernel gets from the data sheet.

    memory, compute: shares of the bandwidth and of the operations that are reached. floor_us: no kernel takes less.
    added_us: what every kernel takes on top of its bytes or operations, to start and to drain.
    """

    memory: float = 0.8
    compute: float = 0.7
    floor_us: float = 0.8
    added_us: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.memory <= 1 and 0 < self.compute <= 1):
            raise ValueError(f"shares must be above 0 and at most 1, found {self.memory=}, {self.compute=}")
        if not (self.floor_us >= 0 and self.added_us >= 0):
            raise ValueError(f"times cannot be negative, found {self.floor_us=}, {self.added_us=}")


def time_us(cost: KernelCost, gpu: str | Hardware, efficiency: Efficiency | None = None) -> float:
    """Microseconds that the kernel takes on ``gpu``: the slower of its bytes and its operations, at least the floor."""
    gpu, efficiency = hardware(gpu), efficiency or Efficiency()
    memory_us = cost.bytes / (gpu.memory_gb_s * 1e3 * efficiency.memory)
    compute_us = cost.operations / (gpu.tflops(cost.rate) * 1e6 * efficiency.compute)
    return max(max(memory_us, compute_us) + efficiency.added_us, efficiency.floor_us) + cost.extra_us


def kernel_costs(tape: Tape, context_len: int | None = None) -> list[KernelCost]:
    """The cost of each kernel of a tape, in its order. Views are no kernels, and so cost nothing.

    context_len: None prices what was recorded. The gather backend copies ``max_seq_len`` tokens of every request,
    however few there are, and reads the copy. A number prices a paged attention kernel in its place, which reads that
    many tokens of every request where they lie: the gathers are gone, and with them what nobody else uses.
    """
    if context_len is not None and context_len < 1:
        raise ValueError(f"context_len must be at least 1, found {context_len}")
    costs = []
    for kernel in tape.kernels if context_len is None else _without_gathers(tape):
        cost = _cost(kernel)
        if context_len is not None and cost.kind == "attention":
            cost = _attention(kernel, context_len)
        costs.append(cost)
    return costs


def _without_gathers(tape: Tape) -> list[Kernel]:
    """The kernels that are left where attention reads the cache itself: of what it was given, only the query."""
    wanted: dict[int, list[bool]] = {}  # buffer -> for each later kernel that reads it, whether that still does
    kept = []
    for kernel in reversed(tape.kernels):
        written = {ref.buffer for ref in kernel.writes}
        readers = [still for buffer in written for still in wanted.get(buffer, [])]
        outside = any(tape.buffers[buffer].outside for buffer in written)
        # What nobody reads is a result. What was read and no longer is belonged to a gather, results or not: a backend
        # keeps slots and masks for the next layer.
        keep = outside or not readers or any(readers)
        if keep:
            kept.append(kernel)
        for position, ref in enumerate(kernel.reads):
            if ref.buffer not in written:
                replaced = position > 0 and _operator(kernel) in _ATTENTION
                wanted.setdefault(ref.buffer, []).append(keep and not replaced)
    return kept[::-1]


def _cost(kernel: Kernel) -> KernelCost:
    operator = _operator(kernel)
    if operator in _ATTENTION:
        return _attention(kernel)
    if operator in _MATMUL:
        return _matmul(kernel)
    written = sum(map(_bytes, kernel.writes))
    operations = sum(math.prod(ref.size) for ref in kernel.writes)
    if operator in _GATHER:  # reads the rows that it writes, not the table that they are in
        indices = sum(map(_bytes, kernel.reads[1:]))
        return KernelCost(kernel.name, "gather", 2 * written + indices, 0, "fp32")
    if operator in _SCATTER:  # writes the rows that it reads, not all of the memory that they are in
        given = [_bytes(ref) for ref in kernel.reads[1:]]  # indices and rows; the first is the memory itself
        return KernelCost(kernel.name, "gather", sum(given) + max(given), 0, "fp32")
    overwritten = set(kernel.writes) if operator in _OVERWRITES else set()
    read = sum(_bytes(ref) for ref in kernel.reads if ref not in overwritten)
    return KernelCost(kernel.name, "elementwise", read + written, operations, "fp32")


def _matmul(kernel: Kernel) -> KernelCost:
    """2 m n k operations: a product of ``[..., m, k]`` and ``[..., k, n]`` writes m n results of k products each."""
    first = kernel.reads[_operator(kernel).startswith(("add", "badd"))]  # behind what is added
    inner = first.size[-1]
    results = math.prod(kernel.writes[0].size)
    moved = sum(map(_bytes, kernel.reads)) + sum(map(_bytes, kernel.writes))
    return KernelCost(kernel.name, "matmul", moved, 2 * results * inner, _rate(first.dtype))


def _attention(kernel: Kernel, context_len: int | None = None) -> KernelCost:
    """Query times keys and weights times values: 4 operations for each query head, position and channel."""
    query, key, value = kernel.reads[:3]  # [batch, heads, tokens, head_dim]
    moved = sum(map(_bytes, kernel.reads)) + sum(map(_bytes, kernel.writes))
    positions = key.size[-2]
    if context_len is not None:
        recorded, positions = positions, context_len
        moved = _bytes(query) + _bytes(kernel.writes[0]) + (_bytes(key) + _bytes(value)) // recorded * context_len
    operations = 4 * math.prod(query.size) * positions
    return KernelCost(kernel.name, "attention", moved, operations, _rate(query.dtype))


def _bytes(ref: TensorRef) -> int:
    """Bytes in different places: what is repeated by a stride of zero is read once."""
    pairs = zip(ref.size, ref.stride, strict=True)
    return math.prod(n for n, stride in pairs if stride or not n) * ref.dtype.itemsize


def _rate(dtype: torch.dtype) -> Rate:
    name = str(dtype).removeprefix("torch.")
    rates: dict[str, Rate] = {"float16": "fp16", "bfloat16": "bf16"}
    return rates.get(name, "fp32")


def _operator(kernel: Kernel) -> str:
    """``aten::add_.Tensor`` -> ``add``."""
    return kernel.name.partition("::")[2].partition(".")[0].rstrip("_")


_MATMUL = frozenset({"mm", "addmm", "bmm", "baddbmm", "linear", "mv", "addmv", "matmul"})
_GATHER = frozenset({"index_select", "embedding", "index", "gather", "take"})
_SCATTER = frozenset({"index_copy", "index_put", "scatter"})
_OVERWRITES = frozenset({"copy", "fill", "zero"})
_ATTENTION = frozenset(
    {
        "scaled_dot_product_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_attention_math",
    }
)
