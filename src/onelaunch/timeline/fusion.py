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


@dataclass(frozen=True)
class Fusion:
    """Which kernels of a layer an engine has made one.

    qkv, gate_up: the products of q, k and v (of gate and up) are one. add_norm: adding to the residual is part of the
    next norm. rope: where q and k are turned (and, in Qwen3, normalized): in a kernel of its own, or inside attention.
    kv_write: where keys and values go into the cache: a kernel of its own, with the rotation, or inside attention.
    gate: silu(gate) * up is a kernel of its own, or part of the product. attention_kernels: 2 where the cache is read
    in parts (split-K) that another kernel puts together.
    """

    qkv: bool = True
    gate_up: bool = True
    add_norm: bool = True
    rope: Literal["own", "attention"] = "own"
    kv_write: Literal["own", "rope", "attention"] = "rope"
    gate: Literal["own", "product"] = "own"
    attention_kernels: int = 1

    def __post_init__(self) -> None:
        if self.kv_write == "rope" and self.rope == "attention":
            raise ValueError('kv_write="rope" means with the rotation, which is inside attention: say "attention".')
        if self.attention_kernels < 1:
            raise ValueError(f"attention_kernels must be at least 1, found {self.attention_kernels}")


# What pegainfer's author lists for a layer: norm, q, k, v, attention with norm, rotation and cache inside, o, add,
# norm, an MLP of two kernels, add. https://susun-blog.com/blog/pegainfer-4-cuda-graph-part2
PEGAINFER = Fusion(qkv=False, add_norm=False, rope="attention", kv_write="attention", gate="product")


def fused_costs(
    config: ModelConfig,
    batch: int,
    context_len: int,
    *,
    fusion: Fusion | None = None,
    dtype: Rate = "bf16",
    weight_bytes: float = 2.0,
    ranks: int = 1,
) -> list[KernelCost]:
    """The kernels of one decode step of ``batch`` requests with ``context_len`` tokens each, in order.

    config: the whole model; with ``ranks`` above one, what one of that many GPUs computes is listed (tensor parallel).
    The sums between GPUs, two a layer, are listed as kernels of kind "all_reduce" that move their activations; what the
    link between the GPUs costs is not priced: give them ``extra_us``. weight_bytes: for each weight of a product; 0.56
    or so where they are quantized to 4 bits and a scale.
    """
    if batch < 1 or context_len < 1:
        raise ValueError(f"batch and context_len must be at least 1, found {batch=}, {context_len=}")
    step = _Step(config.shard(ranks), batch, context_len, fusion or Fusion(), dtype, weight_bytes, ranks)
    step.build()
    return step.kernels


class _Step:
    def __init__(
        self,
        config: ModelConfig,
        batch: int,
        context_len: int,
        fusion: Fusion,
        dtype: Rate,
        weight_bytes: float,
        ranks: int,
    ) -> None:
        self.config, self.batch, self.context_len, self.fusion = config, batch, context_len, fusion
        self.dtype, self.weight_bytes, self.ranks = dtype, weight_bytes, ranks
        self.width = 4 if dtype == "fp32" else 2  # bytes of an activation
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
        self.product("logits", hidden, config.vocab_size)
        self.move("choose token", config.vocab_size)

    def attention_block(self) -> None:
        config, fusion = self.config, self.fusion
        q, kv = (heads * config.head_dim for heads in (config.num_attention_heads, config.num_key_value_heads))
        if fusion.qkv:
            self.product("qkv", config.hidden_size, q + 2 * kv)
        else:
            for name, size in (("q", q), ("k", kv), ("v", kv)):
                self.product(name, config.hidden_size, size)
        if fusion.rope == "own":
            self.move("rope, cache" if fusion.kv_write == "rope" else "rope", 2 * (q + kv))
        if fusion.kv_write == "own":
            self.move("cache", 4 * kv, kind="gather")
        cache = 2 * kv * self.context_len
        moved = self.batch * self.width * (2 * q + cache)
        self.add("attention", "attention", moved, 4 * self.batch * q * self.context_len, self.dtype)
        for _ in range(fusion.attention_kernels - 1):
            self.move("attention, parts", 2 * q)
        self.product("o", q, config.hidden_size)

    def mlp(self) -> None:
        config, fusion = self.config, self.fusion
        hidden, inner = config.hidden_size, config.intermediate_size
        if fusion.gate == "product":
            self.product("gate and up", hidden, 2 * inner, written=inner)
        else:
            for name in ["gate and up"] if fusion.gate_up else ["gate", "up"]:
                self.product(name, hidden, 2 * inner if fusion.gate_up else inner)
            self.move("silu, multiply", 3 * inner)
        self.product("down", inner, hidden)

    def residual(self) -> None:
        """Behind a block: the sum over the ranks, and the addition where it is no part of the next norm."""
        if self.ranks > 1:
            self.move("all-reduce", 2 * self.config.hidden_size, kind="all_reduce")
        if not self.fusion.add_norm:
            self.move("add", 3 * self.config.hidden_size)

    def norm(self, adds: bool) -> None:
        """adds: whether something stands in front of it that is to be added to the residual."""
        fused = adds and self.fusion.add_norm
        self.move("add, norm" if fused else "norm", (4 if fused else 2) * self.config.hidden_size)

    def product(self, name: str, inputs: int, outputs: int, written: int | None = None) -> None:
        moved = self.batch * self.width * (inputs + (outputs if written is None else written))
        weights = round(inputs * outputs * self.weight_bytes)
        self.add(name, "matmul", moved + weights, 2 * self.batch * inputs * outputs, self.dtype)

    def move(self, name: str, values: int, kind: Kind = "elementwise") -> None:
        """A kernel that reads and writes this many values for each request."""
        self.add(name, kind, self.batch * self.width * values, self.batch * values // 2, "fp32")

    def add(self, name: str, kind: Kind, moved: int, operations: int, rate: Rate) -> None:
        self.kernels.append(KernelCost(name, kind, moved, operations, rate))
