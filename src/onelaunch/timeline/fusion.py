"""The kernels of a decode step in an engine that fuses: from a model's shapes and a list of what the engine fuses.

A tape has PyTorch's operators: a norm is eight of them, a rotation three. An engine has written those as one kernel, so
its kernels are fewer by far, while the weights and the cache are read the same. Which kernels an engine has is a
``Fusion``; ``fused_costs`` lists them by these rules:

- a product reads its weights, its input and writes its output; 2 m n k operations;
- attention reads keys and values once, to the true length (paged), and computes 4 operations for each query head,
  position and channel;
- what stands between products reads and writes its activations once, and computes one operation for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onelaunch.models.config import ModelConfig
from onelaunch.timeline.hardware import Rate
from onelaunch.timeline.roofline import KernelCost, Kind

UNGATED = frozenset({"gpt2", "opt"})  # an MLP of two products, positions that are learned and not turned


@dataclass(frozen=True)
class Fusion:
    """Which kernels a layer has in an engine. What it says of rotation and gates is left out where a model has none.

    qkv, gate_up: the products of q, k and v (of gate and up) are one. norm_kernels: for one norm. add_norm: adding to
    the residual is part of the next norm. qk_norm: the norms of q and k (Qwen3) are kernels of their own, or with the
    rotation. rope: q and k are turned in kernels of their own (``rope_kernels`` of them), or inside attention.
    kv_write: keys and values go into the cache in a kernel of their own, with the rotation, or inside attention.
    repeat_kv: keys and values are copied for every query head before attention reads them, which HF transformers does.
    gate: silu(gate) * up is a kernel of its own, two, or part of the product. attention_kernels: 2 where the cache is
    read in parts (split-K) that another kernel puts together. product_kernels: 2 where a product quantizes its input
    first.
    """

    qkv: bool = True
    gate_up: bool = True
    product_kernels: int = 1
    norm_kernels: int = 1
    add_norm: bool = True
    qk_norm: Literal["own", "rope"] = "rope"
    rope: Literal["own", "attention"] = "own"
    rope_kernels: int = 1
    kv_write: Literal["own", "rope", "attention"] = "rope"
    repeat_kv: bool = False
    attention_kernels: int = 1
    gate: Literal["own", "two", "product"] = "own"

    def __post_init__(self) -> None:
        if self.kv_write == "rope" and self.rope == "attention":
            raise ValueError('kv_write="rope" means with the rotation, which is inside attention: say "attention".')
        for name in ("product_kernels", "norm_kernels", "rope_kernels", "attention_kernels"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, found {getattr(self, name)}")


def fused_costs(
    config: ModelConfig,
    batch: int,
    context_len: int,
    *,
    fusion: Fusion | None = None,
    dtype: Rate = "bf16",
    weight_bytes: float | None = None,
    logits_weight_bytes: float | None = None,
    ranks: int = 1,
    all_reduce_us: float = 0.0,
) -> list[KernelCost]:
    """The kernels of one decode step of ``batch`` requests with ``context_len`` tokens each, in order.

    config: the whole model; with ``ranks`` above one, what one of that many GPUs computes is listed (tensor parallel).
    weight_bytes: for each weight of a product, where that is not what ``dtype`` takes; 0.56 or so where weights are
    quantized to 4 bits and a scale. logits_weight_bytes: the same for the last product, which is often not quantized.
    all_reduce_us: what each of the two sums of a layer over the ranks takes; their bytes are read and written at each
    rank, but the link between the GPUs is not priced, so 0 leaves it out.
    """
    if batch < 1 or context_len < 1:
        raise ValueError(f"batch and context_len must be at least 1, found {batch=}, {context_len=}")
    step = _Step(config.shard(ranks) if ranks > 1 else config, batch, context_len, fusion or Fusion(), dtype)
    if weight_bytes is not None:
        step.weight_bytes = step.logits_weight_bytes = weight_bytes
    if logits_weight_bytes is not None:
        step.logits_weight_bytes = logits_weight_bytes
    step.all_reduce_us = all_reduce_us if ranks > 1 else None
    step.build()
    return step.kernels


class _Step:
    """The list while it is being written."""

    def __init__(self, config: ModelConfig, batch: int, context_len: int, fusion: Fusion, dtype: Rate) -> None:
        self.config, self.batch, self.context_len = config, batch, context_len
        self.fusion, self.dtype = fusion, dtype
        self.width = 4 if dtype == "fp32" else 2  # bytes of an activation
        self.weight_bytes = self.logits_weight_bytes = float(self.width)
        self.all_reduce_us: float | None = None
        self.gated = config.family not in UNGATED
        self.kernels: list[KernelCost] = []

    def build(self) -> None:
        config, hidden = self.config, self.config.hidden_size
        self.move("embedding", 2 * hidden, kind="gather")
        for layer in range(config.num_hidden_layers):
            self.norm(adds=layer > 0)
            self.attention_block()
            self.residual()
            self.norm(adds=True)
            self.mlp()
            self.residual()
        self.norm(adds=True)
        self.product("logits", hidden, config.vocab_size, weight_bytes=self.logits_weight_bytes)
        self.move("choose token", config.vocab_size)

    def attention_block(self) -> None:
        config, fusion = self.config, self.fusion
        q, kv = (heads * config.head_dim for heads in (config.num_attention_heads, config.num_key_value_heads))
        if fusion.qkv:
            self.product("qkv", config.hidden_size, q + 2 * kv)
        else:
            for name, size in (("q", q), ("k", kv), ("v", kv)):
                self.product(name, config.hidden_size, size)
        if config.family == "qwen3" and fusion.qk_norm == "own":
            for name, size in (("q norm", q), ("k norm", kv)):
                self.move(name, 2 * size, times=fusion.norm_kernels)
        if self.gated and fusion.rope == "own":
            both = "rope, cache" if fusion.kv_write == "rope" else "rope"
            self.move(both, 2 * (q + kv), times=fusion.rope_kernels)
        if fusion.kv_write == "own" or (not self.gated and fusion.kv_write == "rope"):
            self.move("cache", 4 * kv, kind="gather")
        self.attention(q, kv)
        self.product("o", q, config.hidden_size)

    def attention(self, q: int, kv: int) -> None:
        """Reads the query and, for each token of the context, a key and a value."""
        cache = 2 * kv * self.context_len
        if self.fusion.repeat_kv and q != kv:
            repeated = 2 * q * self.context_len
            self.move("repeat keys, values", cache + repeated, kind="gather")
            cache = repeated
        moved = self.batch * self.width * (2 * q + cache)
        self.add("attention", "attention", moved, 4 * self.batch * q * self.context_len, self.dtype)
        self.move("attention, parts", 2 * q, times=self.fusion.attention_kernels - 1)

    def mlp(self) -> None:
        config, fusion = self.config, self.fusion
        hidden, inner = config.hidden_size, config.intermediate_size
        if not self.gated:
            self.product("up", hidden, inner)
            self.move("activation", 2 * inner)
        elif fusion.gate == "product":
            self.product("gate and up", hidden, 2 * inner, written=inner)
        else:
            for name in ["gate and up"] if fusion.gate_up else ["gate", "up"]:
                self.product(name, hidden, 2 * inner if fusion.gate_up else inner)
            if fusion.gate == "two":
                self.move("silu", 2 * inner)
            self.move("multiply" if fusion.gate == "two" else "silu, multiply", 3 * inner)
        self.product("down", inner, hidden)

    def residual(self) -> None:
        """Behind a block: the sum over the ranks, and the addition where it is no part of the next norm."""
        hidden = self.config.hidden_size
        if self.all_reduce_us is not None:
            self.move("all-reduce", 2 * hidden, kind="all_reduce", extra_us=self.all_reduce_us)
        if not self.fusion.add_norm:
            self.move("add", 3 * hidden)

    def norm(self, adds: bool) -> None:
        """adds: whether something stands in front of it that is to be added to the residual."""
        fused = adds and self.fusion.add_norm
        values = (4 if fused else 2) * self.config.hidden_size
        self.move("add, norm" if fused else "norm", values, times=self.fusion.norm_kernels)

    def product(
        self, name: str, inputs: int, outputs: int, written: int | None = None, weight_bytes: float | None = None
    ) -> None:
        moved = self.batch * self.width * (inputs + (outputs if written is None else written))
        weights = round(inputs * outputs * (self.weight_bytes if weight_bytes is None else weight_bytes))
        self.move(f"{name}, input", 2 * inputs, times=self.fusion.product_kernels - 1)
        self.add(name, "matmul", moved + weights, 2 * self.batch * inputs * outputs, self.dtype)

    def move(
        self, name: str, values: int, *, times: int = 1, kind: Kind = "elementwise", extra_us: float = 0.0
    ) -> None:
        """Kernels that each read and write this many values for each request."""
        for _ in range(times):
            self.add(name, kind, self.batch * self.width * values, self.batch * values // 2, "fp32", extra_us)

    def add(self, name: str, kind: Kind, moved: int, operations: int, rate: Rate, extra_us: float = 0.0) -> None:
        self.kernels.append(KernelCost(name, kind, moved, operations, rate, extra_us))
