"""From a GGUF file to a folder as Hugging Face lays it out: config, float32 weights, tokenizer, chat template.

GGUF is the one-file format of llama.cpp: quantized weights, their configuration and the vocabulary together. The
weights are expanded here once, so that every later start reads plain float32. Knows the ``llama`` architecture with a
byte-level vocabulary, which is what the embedded model is.
"""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gguf import GGUFReader

_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONTROL_TOKEN = 3  # llama.cpp's token type for tokens that steer and are no text
_TOKEN_ROLES = {
    "bos_token": "tokenizer.ggml.bos_token_id",
    "eos_token": "tokenizer.ggml.eos_token_id",
    "unk_token": "tokenizer.ggml.unknown_token_id",
    "pad_token": "tokenizer.ggml.padding_token_id",
}


def convert(gguf_path: Path, folder: Path, *, name: str, progress: bool) -> None:
    """Write the model in ``gguf_path`` into the existing ``folder``.

    Holds one tensor at a time. ``name`` stands in front of the progress bar. Raises ValueError for a GGUF file of
    another kind.
    """
    from gguf import GGUFReader

    reader = GGUFReader(gguf_path)
    architecture, vocabulary = _value(reader, "general.architecture"), _value(reader, "tokenizer.ggml.pre")
    if (architecture, vocabulary) != ("llama", "smollm"):
        raise ValueError(
            f"{gguf_path} holds architecture {architecture!r} with vocabulary {vocabulary!r}; "
            "only llama with smollm is known"
        )
    config = _config(reader)
    _write_json(folder / "config.json", config)
    ids = {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
    _write_json(folder / "generation_config.json", ids)
    _write_tokenizer(reader, folder)
    _write_weights(reader, folder / "model.safetensors", config, name, progress)


def _config(reader: GGUFReader) -> dict[str, Any]:
    # Stored in float32; its shortest decimal form is the number that was meant (1e-05).
    eps = float(str(np.float32(_value(reader, "llama.attention.layer_norm_rms_epsilon"))))
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": _value(reader, "llama.vocab_size"),
        "hidden_size": _value(reader, "llama.embedding_length"),
        "intermediate_size": _value(reader, "llama.feed_forward_length"),
        "num_hidden_layers": _value(reader, "llama.block_count"),
        "num_attention_heads": _value(reader, "llama.attention.head_count"),
        "num_key_value_heads": _value(reader, "llama.attention.head_count_kv"),
        "head_dim": _value(reader, "llama.rope.dimension_count"),
        "hidden_act": "silu",
        "max_position_embeddings": _value(reader, "llama.context_length"),
        "rms_norm_eps": eps,
        "rope_theta": _value(reader, "llama.rope.freq_base"),
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in reader.tensors),
        "bos_token_id": _value(reader, "tokenizer.ggml.bos_token_id"),
        "eos_token_id": _value(reader, "tokenizer.ggml.eos_token_id"),
        "pad_token_id": _value(reader, "tokenizer.ggml.padding_token_id"),
        "torch_dtype": "float32",
    }


def _write_tokenizer(reader: GGUFReader, folder: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = _strings(reader, "tokenizer.ggml.tokens")
    kinds = _numbers(reader, "tokenizer.ggml.token_type")
    merges = [(left, right) for left, _, right in (m.partition(" ") for m in _strings(reader, "tokenizer.ggml.merges"))]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    # "smollm" says that every digit is a token of its own. transformers' GGUF reader leaves that step out, which
    # splits spaces before a digit differently from how the model was trained.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{role: tokens[_value(reader, key)] for role, key in _TOKEN_ROLES.items()},
            "add_prefix_space": False,
            "clean_up_tokenization_spaces": False,
            "model_max_length": _value(reader, "llama.context_length"),
            "chat_template": _value(reader, "tokenizer.chat_template"),
        },
    )


def _write_weights(reader: GGUFReader, path: Path, config: dict[str, Any], name: str, progress: bool) -> None:
    """Write a safetensors file tensor by tensor: a length, a JSON header, then the raw values one after another."""
    from gguf.quants import dequantize
    from tqdm import tqdm

    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor in reader.tensors:
        shape = [int(n) for n in reversed(tensor.shape)]  # GGUF counts dimensions from the innermost
        start, end = end, end + 4 * int(np.prod(shape))
        header[_hf_name(tensor.name)] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the values begin at a multiple of 8
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    with (
        path.open("wb") as out,
        tqdm(total=end, desc=f"{name}: converting", unit="B", unit_scale=True, disable=not progress) as bar,
    ):
        out.write(struct.pack("<Q", len(text)) + text)
        for tensor in reader.tensors:
            shape = header[_hf_name(tensor.name)]["shape"]
            values = dequantize(tensor.data, tensor.tensor_type).reshape(shape).astype("<f4", copy=False)
            kind = tensor.name.split(".")[-2]
            if kind in heads:
                values = _unpermute(values, heads[kind])
            out.write(np.ascontiguousarray(values).data)
            bar.update(values.nbytes)


def _unpermute(values: np.ndarray, heads: int) -> np.ndarray:
    """Undo llama.cpp's order of the rows of q and k ``[heads * head_dim, hidden]``.

    llama.cpp rotates neighbours (0, 1), (2, 3), ... of a head; Hugging Face rotates halves (0, head_dim / 2), ...
    """
    rows, columns = values.shape
    pairs = values.reshape(heads, rows // heads // 2, 2, columns)  # [heads, head_dim / 2, 2, hidden]
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def _hf_name(name: str) -> str:
    """``blk.3.attn_q.weight`` is ``model.layers.3.self_attn.q_proj.weight``."""
    match = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.weight", name)
    if match is None or match[2] not in _NAMES:
        raise ValueError(f"the GGUF file holds a tensor {name!r}, which a Llama model does not have")
    return f"{'' if match[1] is None else f'model.layers.{match[1]}.'}{_NAMES[match[2]]}.weight"


def _value(reader: GGUFReader, key: str) -> Any:
    """One number or string of the file's metadata."""
    field = reader.fields.get(key)
    if field is None:
        raise ValueError(f"the GGUF file lacks {key!r}")
    part = field.parts[field.data[0]]
    return bytes(part).decode() if field.types[0].name == "STRING" else part[0].item()


def _strings(reader: GGUFReader, key: str) -> list[str]:
    field = reader.fields[key]
    return [field.parts[i].tobytes().decode() for i in field.data]


def _numbers(reader: GGUFReader, key: str) -> list[int]:
    field = reader.fields[key]
    return [int(field.parts[i][0]) for i in field.data]


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
