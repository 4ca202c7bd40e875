"""Llama: the decoder that most open checkpoints share. SmolLM2 is one; Qwen3 differs by two norms (see ``qwen3``).

A layer asks the context for attention, so the model itself knows nothing of pages, batches or requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from onelaunch.models.config import ModelConfig
from onelaunch.models.layers import MergedLinear, RMSNorm, RotaryEmbedding, rotate

if TYPE_CHECKING:
    from onelaunch.engine.core import Context


class LlamaAttention(nn.Module):
    def __init__(self, config: ModelConfig, layer_id: int) -> None:
        super().__init__()
        self.layer_id = layer_id
        self.num_heads, self.num_kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = config.head_dim
        q_width, kv_width = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        self.qkv_proj = MergedLinear(config.hidden_size, (q_width, kv_width, kv_width), config.attention_bias)
        self.o_proj = MergedLinear(q_width, (config.hidden_size,), config.attention_bias)

    def position(self, qk: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Give queries and keys ``[tokens, heads + kv_heads, head_dim]`` their positions, in one rotation."""
        return rotate(qk, cos, sin)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, context: Context) -> Tensor:
        qkv = self.qkv_proj(x).view(x.shape[0], -1, self.head_dim)  # [tokens, heads + 2 kv_heads, head_dim]
        qk, v = qkv.split([self.num_heads + self.num_kv_heads, self.num_kv_heads], dim=1)
        q, k = self.position(qk, cos, sin).split([self.num_heads, self.num_kv_heads], dim=1)
        out = context.attn_backend.forward(q, k, v, self.layer_id, context.batch)  # [tokens, heads, head_dim]
        return self.o_proj(out.reshape(x.shape[0], -1))


class LlamaMLP(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.intermediate_size
        self.gate_up_proj = MergedLinear(config.hidden_size, (width, width), config.mlp_bias)
        self.down_proj = MergedLinear(width, (config.hidden_size,), config.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(F.silu(gate) * up)


class LlamaLayer(nn.Module):
    def __init__(self, config: ModelConfig, layer_id: int, attention: type[LlamaAttention]) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = attention(config, layer_id)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = LlamaMLP(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, context: Context) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, context)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaForCausalLM(nn.Module):
    """Token ids in, logits of each request's last token out."""

    attention: ClassVar[type[LlamaAttention]] = LlamaAttention

    def __init__(self, config: ModelConfig, max_seq_len: int) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding.from_pretrained(torch.empty(config.vocab_size, config.hidden_size))
        self.rotary = RotaryEmbedding(config, max_seq_len)
        self.layers = nn.ModuleList(
            LlamaLayer(config, layer_id, self.attention) for layer_id in range(config.num_hidden_layers)
        )
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.lm_head = MergedLinear(config.hidden_size, (config.vocab_size,))

    def forward(self, input_ids: Tensor, positions: Tensor, context: Context) -> Tensor:
        """One step over the batch in ``context``.

        input_ids, positions: ``[tokens]`` int64. Returns logits ``[requests, vocab]`` float32.
        """
        x = self.embed_tokens(input_ids)  # [tokens, hidden]
        cos, sin = self.rotary.lookup(positions)
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin, context)
        last = context.batch.attn_metadata.last_indices
        if last is not None:  # a prefill: only the last token of each prompt predicts anything new
            x = x.index_select(0, last)
        return self.lm_head(self.norm(x)).float()

    def load_weights(self, tensor: Callable[[str], Tensor | None]) -> None:
        """Fill the parameters from a checkpoint; ``tensor(name)`` returns it by its Hugging Face name, or None."""

        def get(name: str) -> Tensor:
            found = tensor(name)
            if found is None:
                raise KeyError(name)
            return found

        def load(merged: MergedLinear, *names: str) -> None:
            merged.load([get(f"{name}.weight") for name in names], [tensor(f"{name}.bias") for name in names])

        with torch.no_grad():
            self.embed_tokens.weight.copy_(get("model.embed_tokens.weight"))
            self.norm.weight.copy_(get("model.norm.weight"))
            load(self.lm_head, "model.embed_tokens" if self.config.tie_word_embeddings else "lm_head")
            for number, layer in enumerate(self.layers):
                assert isinstance(layer, LlamaLayer)
                prefix = f"model.layers.{number}"
                load(layer.self_attn.qkv_proj, *(f"{prefix}.self_attn.{part}_proj" for part in "qkv"))
                load(layer.self_attn.o_proj, f"{prefix}.self_attn.o_proj")
                load(layer.mlp.gate_up_proj, f"{prefix}.mlp.gate_proj", f"{prefix}.mlp.up_proj")
                load(layer.mlp.down_proj, f"{prefix}.mlp.down_proj")
                for name, module in layer.named_modules():
                    if isinstance(module, RMSNorm):
                        module.weight.copy_(get(f"{prefix}.{name}.weight"))
