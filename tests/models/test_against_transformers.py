"""Our models compute what transformers computes: random weights, many shapes, logits within 1e-4 in float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from onelaunch import LLM, SamplingParams
from onelaunch.errors import ModelNotFoundError

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
SHAPE: dict[str, Any] = {
    "vocab_size": 199,
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 6,
    "max_position_embeddings": 512,
    "eos_token_id": 0,
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama, all heads have their own keys": ("Llama", {}),
    "llama, grouped heads": ("Llama", {"num_key_value_heads": 2}),
    "llama, one key head for all": ("Llama", {"num_key_value_heads": 1}),
    "llama, head_dim is not hidden / heads": ("Llama", {"num_key_value_heads": 3, "head_dim": 20}),
    "llama, tied embeddings": ("Llama", {"tie_word_embeddings": True}),
    "llama, untied embeddings": ("Llama", {"tie_word_embeddings": False}),
    "llama, attention bias": ("Llama", {"attention_bias": True, "num_key_value_heads": 2}),
    "llama, bias everywhere": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, Llama 3 rope scaling": ("Llama", {"rope_parameters": LLAMA3_ROPE}),
    "llama, wide norm epsilon": ("Llama", {"rms_norm_eps": 1e-2}),
    "qwen3": ("Qwen3", {"head_dim": 8}),
    "qwen3, grouped heads and its own head_dim": ("Qwen3", {"num_key_value_heads": 2, "head_dim": 32}),
    "qwen3, tied embeddings": ("Qwen3", {"head_dim": 16, "tie_word_embeddings": True}),
    "qwen3, attention bias": ("Qwen3", {"head_dim": 16, "attention_bias": True}),
}


def save_random_model(folder: Path, family: str, **changes: Any) -> Any:
    """A transformers model with random weights, saved to ``folder``; biases and norms are random too."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**{**SHAPE, **changes})
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm" in name else 0.0, 0.15)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("case", CASES)
def test_logits_equal_transformers_in_prefill_and_decode(case: str, tmp_path: Path, logits_of_steps: Any) -> None:
    family, changes = CASES[case]
    reference = save_random_model(tmp_path, family, **changes)
    generator = torch.Generator().manual_seed(1)
    prompts = [torch.randint(1, 199, (n,), generator=generator).tolist() for n in (1, 5, 16, 17, 100)]
    with LLM(tmp_path, device="cpu") as llm:
        steps, outputs = logits_of_steps(llm, prompts, SamplingParams(max_tokens=20, ignore_eos=True))
    assert len(steps) == 20
    for row, (prompt, output) in enumerate(zip(prompts, outputs, strict=True)):
        with torch.no_grad():
            expected = reference(torch.tensor([prompt + output])).logits[0]
        for step, logits in enumerate(steps):
            torch.testing.assert_close(logits[row], expected[len(prompt) - 1 + step], atol=1e-4, rtol=0)


def test_weights_in_several_files_load_alike(tmp_path: Path) -> None:
    model = save_random_model(tmp_path / "one", "Llama")
    model.save_pretrained(tmp_path / "many", max_shard_size="50KB")
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 1
    with LLM(tmp_path / "one", device="cpu") as one, LLM(tmp_path / "many", device="cpu") as many:
        assert one.generate([[1, 2, 3]]) == many.generate([[1, 2, 3]])


@pytest.mark.parametrize(
    ("family", "changes", "said"),
    [
        ("Llama", {"hidden_act": "gelu"}, "hidden_act='gelu'"),
        ("Llama", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}}, "rope_type='linear'"),
        ("Mistral", {}, "MistralForCausalLM"),
    ],
)
def test_a_model_that_would_come_out_wrong_is_refused(
    family: str, changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    save_random_model(tmp_path, family, **changes)
    with pytest.raises(ModelNotFoundError, match=said):
        LLM(tmp_path, device="cpu")


def test_damaged_checkpoints_say_what_is_wrong(tmp_path: Path) -> None:
    save_random_model(tmp_path, "Llama")
    weights = tmp_path / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelNotFoundError, match="damaged"):
        LLM(tmp_path, device="cpu")
    weights.unlink()
    with pytest.raises(ModelNotFoundError, match=r"no model\.safetensors"):
        LLM(tmp_path, device="cpu")
    weights.write_bytes(whole)
    config = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(config.replace('"num_hidden_layers": 3', '"num_hidden_layers": 4'))
    with pytest.raises(ModelNotFoundError, match=r"lack the tensor 'model\.layers\.3"):
        LLM(tmp_path, device="cpu")
    (tmp_path / "config.json").write_text(config.replace('"intermediate_size": 96', '"intermediate_size": 95'))
    with pytest.raises(ModelNotFoundError, match="do not fit"):
        LLM(tmp_path, device="cpu")
