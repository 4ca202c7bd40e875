"""What the engine needs to know of a checkpoint: the shapes in its ``config.json``, read without transformers."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onelaunch.errors import ModelNotFoundError

ARCHITECTURES = {"LlamaForCausalLM": "llama", "Qwen3ForCausalLM": "qwen3"}


@dataclass(frozen=True)
class RopeScaling:
    """Llama 3's stretching of the rotary frequencies (``rope_type: llama3``), see Llama 3.1's reference code."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int


@dataclass(frozen=True)
class ModelConfig:
    """Shapes and constants of a decoder-only model. Names follow Hugging Face's ``config.json``."""

    family: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: RopeScaling | None = None
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    eos_token_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_attention_heads ({self.num_attention_heads}) must be a multiple of "
                f"num_key_value_heads ({self.num_key_value_heads})"
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim must be even for rotary embeddings, found {self.head_dim}")

    def shard(self, ranks: int) -> ModelConfig:
        """What one of ``ranks`` GPUs computes under tensor parallelism: its share of heads, MLP columns and vocabulary.

        Key and value heads are repeated where there are fewer than ranks. The sums between ranks are not part of the
        model. Raises ValueError where something cannot be divided.
        """
        kv_heads = self.num_key_value_heads
        for name in ("num_attention_heads", "intermediate_size", "vocab_size"):
            if getattr(self, name) % ranks:
                raise ValueError(f"{name}={getattr(self, name)} cannot be divided among {ranks} ranks.")
        if kv_heads % ranks and ranks % kv_heads:
            raise ValueError(f"num_key_value_heads={kv_heads} cannot be divided among or repeated on {ranks} ranks.")
        return replace(
            self,
            num_attention_heads=self.num_attention_heads // ranks,
            num_key_value_heads=max(1, kv_heads // ranks),
            intermediate_size=self.intermediate_size // ranks,
            vocab_size=self.vocab_size // ranks,
        )

    @classmethod
    def from_folder(cls, folder: Path) -> ModelConfig:
        """Read ``config.json`` (and ``generation_config.json`` for the end-of-text ids) of a checkpoint folder.

        Raises ModelNotFoundError where there is no readable config, and for models that this engine does not run.
        """
        path = folder / "config.json"
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ModelNotFoundError(
                f"no config.json in {folder}: a local model is a folder as transformers saves it "
                "(config.json, *.safetensors, tokenizer.json)."
            ) from None
        except (OSError, ValueError) as error:
            raise ModelNotFoundError(f"cannot read {path}: {error}") from error
        eos = _ids(raw.get("eos_token_id"))
        generation = folder / "generation_config.json"
        if generation.is_file():
            eos = _ids(json.loads(generation.read_text(encoding="utf-8")).get("eos_token_id")) or eos
        return cls.from_dict(raw, eos_token_ids=eos, where=str(path))

    @classmethod
    def from_dict(cls, raw: dict[str, Any], eos_token_ids: tuple[int, ...] = (), where: str = "config") -> ModelConfig:
        """Build from a parsed ``config.json``; ``where`` names it in errors."""
        architecture = (raw.get("architectures") or ["(none)"])[0]
        if architecture not in ARCHITECTURES:
            raise ModelNotFoundError(
                f"{where} says architecture {architecture}; this engine runs {' and '.join(ARCHITECTURES)}."
            )
        for key, wanted in (("hidden_act", "silu"), ("use_sliding_window", False), ("quantization_config", None)):
            found = raw.get(key, wanted)
            if found != wanted:
                raise ModelNotFoundError(
                    f"{where} sets {key}={found!r}; this engine runs models with {key}={wanted!r}."
                )
        # transformers 5 writes one "rope_parameters"; older checkpoints have "rope_theta" and "rope_scaling".
        rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
        heads = raw["num_attention_heads"]
        return cls(
            family=ARCHITECTURES[architecture],
            vocab_size=raw["vocab_size"],
            hidden_size=raw["hidden_size"],
            intermediate_size=raw["intermediate_size"],
            num_hidden_layers=raw["num_hidden_layers"],
            num_attention_heads=heads,
            num_key_value_heads=raw.get("num_key_value_heads") or heads,
            head_dim=raw.get("head_dim") or raw["hidden_size"] // heads,
            max_position_embeddings=raw.get("max_position_embeddings", 2048),
            rms_norm_eps=raw.get("rms_norm_eps", 1e-6),
            rope_theta=rope.get("rope_theta") or raw.get("rope_theta") or 10000.0,
            rope_scaling=_rope_scaling(rope, where),
            tie_word_embeddings=bool(raw.get("tie_word_embeddings", False)),
            attention_bias=bool(raw.get("attention_bias", False)),
            mlp_bias=bool(raw.get("mlp_bias", False)),
            eos_token_ids=eos_token_ids,
        )


def _rope_scaling(rope: dict[str, Any], where: str) -> RopeScaling | None:
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return None
    if kind != "llama3":
        raise ModelNotFoundError(f"{where} sets rope_type={kind!r}; this engine knows 'default' and 'llama3'.")
    return RopeScaling(
        factor=rope["factor"],
        low_freq_factor=rope["low_freq_factor"],
        high_freq_factor=rope["high_freq_factor"],
        original_max_position_embeddings=rope["original_max_position_embeddings"],
    )


def _ids(value: int | list[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)
