"""The layers both model families are made of. Activations are flat: one row per token, ``[tokens, width]``,
whether the tokens belong to one prompt or to eight requests in the middle of decoding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from onelaunch.models.config import ModelConfig


class MergedLinear(nn.Module):
    """Projections that read the same input, stored side by side and computed as one product.

    Merging q, k and v (or gate and up) means one kernel where there were three (or two). The weight is kept as
    ``[in, out]``, the transpose of ``nn.Linear``'s: on a CPU a single row times it is the faster product, and a GPU
    does not mind. For more rows a CPU has a better layout still, see ``load``.
    """

    def __init__(self, in_features: int, out_features: Sequence[int], bias: bool = False) -> None:
        super().__init__()
        self.out_features = tuple(out_features)
        self.weight = nn.Parameter(torch.empty(in_features, sum(out_features)), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(sum(out_features)), requires_grad=False) if bias else None
        self._packed: Tensor | None = None

    def load(self, weights: Sequence[Tensor], biases: Sequence[Tensor | None]) -> None:
        """Fill in the parts' ``[out, in]`` weights (and ``[out]`` biases) as a checkpoint holds them.

        A float32 weight on a CPU is kept a second time, in oneDNN's blocked layout, for products of two rows and more:
        for SmolLM2 at batch 8 that is half again as fast (``benchmarks/generate.py``), for the memory of one copy.
        """
        merged = weights[0] if len(weights) == 1 else torch.cat(list(weights))
        self.weight.copy_(merged.t())
        if self.bias is not None:
            if any(bias is None for bias in biases):
                raise ValueError("it announces a bias that the weights do not hold")
            self.bias.copy_(torch.cat([bias for bias in biases if bias is not None]))
        if self.weight.is_cpu and self.weight.dtype == torch.float32 and torch.backends.mkldnn.is_available():
            self._packed = torch.ops.mkldnn._reorder_linear_weight(merged.to(torch.float32).contiguous())

    def forward(self, x: Tensor) -> Tensor:
        """``[tokens, in]`` to ``[tokens, sum(out)]``."""
        if self._packed is not None and x.shape[0] > 1:
            return torch.ops.mkldnn._linear_pointwise.default(x, self._packed, self.bias, "none", [], "")
        if self.bias is None:
            return torch.mm(x, self.weight)
        return torch.addmm(self.bias, x, self.weight)


class RMSNorm(nn.Module):
    """Scale each vector to unit root mean square, then by a learned weight (arXiv 1910.07467)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width), requires_grad=False)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class RotaryEmbedding(nn.Module):
    """Rotary position embedding (arXiv 2104.09864) from a table of cosines and sines, one row per position.

    The model looks a step's rows up once, all its layers use them.
    """

    table: Tensor  # [max_position, 2, head_dim] float32: cosines, signed sines

    def __init__(self, config: ModelConfig, max_seq_len: int) -> None:
        super().__init__()
        frequencies = rope_frequencies(config)  # [head_dim / 2]
        angles = torch.arange(max_seq_len, dtype=torch.float32)[:, None] * frequencies  # [max_seq_len, head_dim / 2]
        cos, sin = angles.cos(), angles.sin()
        # The rotation pairs dimension i with i + head_dim / 2:
        #   out = x * [cos, cos] + swap_halves(x) * [-sin, sin]
        table = torch.stack([torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1)], dim=1)
        self.register_buffer("table", table, persistent=False)

    def lookup(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and signed sines, each ``[tokens, 1, head_dim]``, for ``positions`` ``[tokens]``."""
        rows = self.table.index_select(0, positions)
        return rows[:, 0:1], rows[:, 1:2]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate ``x`` ``[tokens, heads, head_dim]`` by the angles that ``RotaryEmbedding.lookup`` returned."""
    first, second = x.chunk(2, dim=-1)
    return torch.addcmul(x * cos, torch.cat([second, first], dim=-1), sin)


def rope_frequencies(config: ModelConfig) -> Tensor:
    """Rotary frequencies ``[head_dim / 2]`` in radians per position, stretched as Llama 3 does where configured."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.int64).float() / config.head_dim
    frequencies = 1.0 / (config.rope_theta**exponents)
    scaling = config.rope_scaling
    if scaling is None:
        return frequencies
    # Long wavelengths are stretched by `factor`, short ones stay, those between are blended.
    wavelengths = 2 * math.pi / frequencies
    turns = scaling.original_max_position_embeddings / wavelengths
    blend = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    blend = blend.clamp(0.0, 1.0)
    return (1.0 - blend) * frequencies / scaling.factor + blend * frequencies
