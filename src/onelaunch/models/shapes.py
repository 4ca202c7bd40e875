"""Shapes of public models: what a step of theirs moves and computes can be known without a weight.

Read from the models' ``config.json`` on the Hugging Face hub, unless a comment says otherwise.
"""

from __future__ import annotations

from dataclasses import replace

from onelaunch.models.config import ModelConfig

_LLAMA_3 = ModelConfig(
    family="llama",
    vocab_size=128256,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    max_position_embeddings=8192,
    rms_norm_eps=1e-5,
    rope_theta=500000.0,
)
_QWEN_3 = ModelConfig(
    family="qwen3",
    vocab_size=151936,
    hidden_size=1024,
    intermediate_size=3072,
    num_hidden_layers=28,
    num_attention_heads=16,
    num_key_value_heads=8,
    head_dim=128,
    max_position_embeddings=40960,
    rope_theta=1000000.0,
    tie_word_embeddings=True,
)

# Models that the engine runs: their steps can be recorded.
SHAPES = {
    "meta-llama/Llama-2-7b-hf": replace(
        _LLAMA_3,
        vocab_size=32000,
        intermediate_size=11008,
        num_key_value_heads=32,
        max_position_embeddings=4096,
        rope_theta=10000.0,
    ),
    "meta-llama/Meta-Llama-3-8B": _LLAMA_3,
    "meta-llama/Meta-Llama-3-70B": replace(
        _LLAMA_3, hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64
    ),
    "Qwen/Qwen3-0.6B": _QWEN_3,
    "Qwen/Qwen3-1.7B": replace(_QWEN_3, hidden_size=2048, intermediate_size=6144),
    "Qwen/Qwen3-4B": replace(
        _QWEN_3, hidden_size=2560, intermediate_size=9728, num_hidden_layers=36, num_attention_heads=32
    ),
    "Qwen/Qwen3-8B": replace(
        _QWEN_3,
        hidden_size=4096,
        intermediate_size=12288,
        num_hidden_layers=36,
        num_attention_heads=32,
        tie_word_embeddings=False,
    ),
    "deepseek-ai/deepseek-coder-1.3b-base": replace(
        _LLAMA_3,
        vocab_size=32256,
        hidden_size=2048,
        intermediate_size=5504,
        num_hidden_layers=24,
        num_attention_heads=16,
        num_key_value_heads=16,
        rope_theta=100000.0,
    ),
    "deepseek-ai/deepseek-llm-67b-base": replace(
        _LLAMA_3,
        vocab_size=102400,
        hidden_size=8192,
        intermediate_size=22016,
        num_hidden_layers=95,
        num_attention_heads=64,
        max_position_embeddings=4096,
        rope_theta=10000.0,
    ),
}

# Models that it does not run: their kernels can be listed (``onelaunch.timeline.fusion``), not recorded.
OTHER_SHAPES = {
    "openai-community/gpt2": ModelConfig("gpt2", 50257, 768, 3072, 12, 12, 12, 64, 1024),
    "facebook/opt-175b": ModelConfig("opt", 50272, 12288, 49152, 96, 96, 96, 128, 2048),  # from the OPT paper, table 1
    "Qwen/Qwen2.5-32B-Instruct": ModelConfig("qwen2", 152064, 5120, 27648, 64, 40, 8, 128, 32768),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": ModelConfig("qwen2", 151936, 1536, 8960, 28, 12, 2, 128, 131072),
    # The Llama inside Chatterbox's T3, from its llama_configs.py; 8194 is the number of its speech tokens.
    "ResembleAI/chatterbox T3": ModelConfig("llama", 8194, 1024, 4096, 30, 16, 16, 64, 131072),
}
