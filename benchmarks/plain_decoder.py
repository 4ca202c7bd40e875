"""A decoder in plain PyTorch with static caches: the decode step that every way of running it can take as it is.

The engine's own step reads pages and packed weights; this one is what tracing and compiling are made for, so that a
comparison with them is fair. Shapes follow Qwen3: grouped queries, a norm on queries and keys, a gated MLP.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Layer(nn.Module):
    k_cache: Tensor  # [batch, kv_heads, context, head_dim]
    v_cache: Tensor

    def __init__(self, hidden: int, heads: int, batch: int, context: int, sdpa: bool) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim, self.sdpa = heads, heads // 2, hidden // heads, sdpa
        kv_width = self.kv_heads * self.head_dim
        self.qkv = nn.Linear(hidden, hidden + 2 * kv_width, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 6 * hidden, bias=False)
        self.down = nn.Linear(3 * hidden, hidden, bias=False)
        self.norms = nn.ParameterList(torch.ones(n) for n in (hidden, hidden, self.head_dim, self.head_dim))
        for name in ("k_cache", "v_cache"):
            self.register_buffer(name, torch.zeros(batch, self.kv_heads, context, self.head_dim))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, position: Tensor, mask: Tensor) -> Tensor:
        batch, hidden = x.shape
        widths = [hidden, self.kv_heads * self.head_dim, self.kv_heads * self.head_dim]
        q, k, v = self.qkv(norm(x, self.norms[0])).split(widths, dim=-1)
        q = rotate(norm(q.view(batch, self.heads, 1, self.head_dim), self.norms[2]), cos, sin)
        k = rotate(norm(k.view(batch, self.kv_heads, 1, self.head_dim), self.norms[3]), cos, sin)
        self.k_cache.index_copy_(2, position, k)
        self.v_cache.index_copy_(2, position, v.view(batch, self.kv_heads, 1, self.head_dim))
        q = q.view(batch, self.kv_heads, 2, self.head_dim)  # the two query heads that share a key head
        if self.sdpa:
            attended = F.scaled_dot_product_attention(q, self.k_cache, self.v_cache, attn_mask=mask)
        else:
            scores = q @ self.k_cache.transpose(-1, -2) * self.head_dim**-0.5  # [batch, kv_heads, 2, context]
            attended = scores.masked_fill(~mask, -torch.inf).softmax(-1) @ self.v_cache
        x = x + self.out(attended.reshape(batch, hidden))
        gate, up = self.gate_up(norm(x, self.norms[1])).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class PlainDecoder(nn.Module):
    """One decode step for ``batch`` requests of one length: token ids in, logits out."""

    cos: Tensor  # [context, head_dim]
    sin: Tensor

    def __init__(self, hidden: int, batch: int, layers: int = 28, context: int = 64, sdpa: bool = False) -> None:
        super().__init__()
        heads = max(2, hidden // 64 if hidden >= 512 else hidden // 16)
        self.embed = nn.Embedding(1024, hidden)
        self.layers = nn.ModuleList(Layer(hidden, heads, batch, context, sdpa) for _ in range(layers))
        self.norm = nn.Parameter(torch.ones(hidden))
        self.head = nn.Linear(hidden, 1024, bias=False)
        angles = torch.arange(context)[:, None] / 10_000 ** torch.linspace(0, 1, hidden // heads // 2)
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, dim=-1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, dim=-1))

    def forward(self, ids: Tensor, position: Tensor) -> Tensor:
        """ids: ``[batch]`` int64. position: ``[1]`` int64, below the context. Returns ``[batch, vocab]`` float32."""
        cos, sin = self.cos.index_select(0, position), self.sin.index_select(0, position)
        mask = torch.arange(self.cos.shape[0], device=ids.device)[None] <= position  # [1, context]
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, cos, sin, position, mask)
        return self.head(norm(x, self.norm))

    def empty_caches(self) -> None:
        """Forget all requests."""
        for layer in self.layers:
            assert isinstance(layer, Layer)
            layer.k_cache.zero_()
            layer.v_cache.zero_()


def norm(x: Tensor, weight: Tensor) -> Tensor:
    """Root mean square norm over the last dimension."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding: dimension i turns with i + half."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin
