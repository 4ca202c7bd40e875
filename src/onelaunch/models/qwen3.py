"""Qwen3: Llama with each query and key head normalized before it is rotated, and a head_dim of its own."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from onelaunch.models.config import ModelConfig
from onelaunch.models.layers import RMSNorm, rotate
from onelaunch.models.llama import LlamaAttention, LlamaForCausalLM


class Qwen3Attention(LlamaAttention):
    def __init__(self, config: ModelConfig, layer_id: int) -> None:
        super().__init__(config, layer_id)
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps)
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps)

    def position(self, qk: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k = qk.split([self.num_heads, self.num_kv_heads], dim=1)
        return rotate(torch.cat([self.q_norm(q), self.k_norm(k)], dim=1), cos, sin)


class Qwen3ForCausalLM(LlamaForCausalLM):
    attention: ClassVar[type[LlamaAttention]] = Qwen3Attention
