"""Makes any language model of transformers small: its configuration with few layers, narrow, a short vocabulary.

One table of field names does for most architectures, because they name their sizes alike. ``OVERRIDES`` has what the
table cannot know: sizes that have to fit together in one architecture only.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

VOCABULARY = 128
LONGEST = 64  # positions

# Field names by the size that they get. A field whose default is smaller, None or no number is left alone.
_SIZES: dict[int, str] = {
    64: """hidden_size d_model n_embd emb_dim embedding_dim embedding_size input_embedding_size output_embedding_size
        word_embed_proj_dim lru_width hidden_size_global dim_model attention_embed_dim backbone_hidden_size
        hidden_size_per_layer_input lm_head_hidden_size dim_model_base out_hidden_size projector_input_dim
        projector_output_dim vision_output_dim adapter_in_dim adapter_out_dim
        adapter_input_size pronunciation_embed_dim shape_embed_dim""",
    128: """intermediate_size ffn_dim decoder_ffn_dim encoder_ffn_dim d_ff d_inner n_inner dff dim_ff ffn_hidden_size
        moe_intermediate_size shared_expert_intermediate_size shared_experts_intermediate_size intermediate_size_mlp
        shared_intermediate_size expert_ffn_hidden_size dense_intermediate_size feed_forward_size mamba_d_ssm
        moe_shared_expert_intermediate_size attention_hidden_size
        max_position_embeddings n_positions max_seq_len model_max_length n_ctx context_length max_target_positions
        max_source_positions""",
    32: "router_hidden_size ngram_vocab_size_base index_topk rel_extent moe_latent_size",
    16: """head_dim d_kv d_head dim_head kv_channels attention_head_dim attention_head_size global_head_dim swa_head_dim
        linear_head_dim linear_key_head_dim linear_value_head_dim v_head_dim index_head_dim mamba_d_head mamba_head_dim
        mamba_headdim ssm_state_size mamba_d_state state_size q_lora_rank kv_lora_rank qk_nope_head_dim
        o_lora_rank laurel_rank gated_norm_rank hc_lowrank loop_gate_rank adapter_rank mamba_chunk_size chunk_size
        qk_nope_head_dim prompt_length swa_v_head_dim""",
    8: "qk_rope_head_dim rotary_dim mamba_n_heads mamba_num_heads d_rel mamba_dt_rank time_step_rank",
    4: """num_attention_heads n_head n_heads num_heads decoder_attention_heads encoder_attention_heads attention_heads
        swa_num_attention_heads linear_num_heads linear_num_value_heads num_experts num_local_experts n_routed_experts
        moe_num_experts zero_expert_num num_encoder_attention_heads num_decoder_attention_heads""",
    2: """num_hidden_layers n_layer n_layers num_layers decoder_layers encoder_layers num_decoder_layers
        num_encoder_layers num_blocks depth num_key_value_heads num_kv_heads kv_n_heads swa_num_key_value_heads
        linear_num_key_heads index_n_heads num_experts_per_tok num_experts_per_token moe_topk moe_top_k moe_k
        num_global_layers mamba_n_groups n_groups global_num_key_value_heads num_query_groups""",
    1: """first_k_dense_replace n_shared_experts num_shared_experts moe_num_shared_experts n_group topk_group
        num_expert_group num_nextn_predict_layers num_dense_layers attn_layer_offset expert_layer_offset""",
    0: "num_kv_shared_layers",
}
_SIZE_OF = {name: size for size, names in _SIZES.items() for name in names.split()}
_WINDOWS = ("sliding_window", "sliding_window_size", "attention_chunk_size", "attention_window_size", "local_attention")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "num_decoder_layers")

# By model type: fields beside or instead of the table's. Nested configurations are nested here.
OVERRIDES: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1]},
    "cohere_compass_text": {
        "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 2, 2]}}
    },
    "dbrx": {"attn_config": {"rope_theta": 1e4, "clip_qkv": 8}},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "falcon_h1": {"mamba_d_ssm": 128, "mamba_n_heads": 8, "mamba_d_head": 16},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"]},
    "hunyuan_v1_moe": {"num_experts": 4, "moe_topk": 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "longcat_flash": {"head_dim": 8},
    "mamba2": {"num_heads": 8, "head_dim": 16},
    "musicgen": {"decoder": {"num_codebooks": 2}},
    "musicgen_melody": {"decoder": {"num_codebooks": 2}},
    "qwen4_exp_text": {
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 16,
        "indexer_budget": 16,
        "indexer_compress_ratio": 4,
    },
    "recurrent_gemma": {"num_hidden_layers": 3},
    "reformer": {"axial_pos_embds": False},
    "rwkv": {"attention_hidden_size": 64},
    "xlnet": {"mem_len": 4},
    "xlstm": {"qk_dim_factor": 1.0},
    "xmod": {"default_language": "en_XX"},
    "zamba": {"num_hidden_layers": 4, "layers_block_type": ["linear_attention", "hybrid"] * 2},
}
OVERRIDES["dots3_note_text"] = {
    f"swa_{name}": size
    for name, size in {
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "q_lora_rank": 16,
        "kv_lora_rank": 16,
        "head_dim": 24,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 16,
    }.items()
}
OVERRIDES["dots3_note"] = {"text_config": OVERRIDES["dots3_note_text"]}
OVERRIDES["qwen4_exp"] = {"text_config": OVERRIDES["qwen4_exp_text"]}
# These are asked for by the configuration of a whole of which they are one part.
_PARTS = {"musicgen": "decoder", "musicgen_melody": "decoder"}


def shrunk(model_type: str, window: int = LONGEST) -> Any:
    """The configuration of ``model_type`` made small. Raises what the configuration raises where it does not fit.

    window: tokens that a layer with a sliding window, or with chunks, sees at most.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = _shrink(CONFIG_MAPPING[model_type], OVERRIDES.get(model_type, {}), window)
    return getattr(config, _PARTS[model_type]) if model_type in _PARTS else config


def _shrink(kind: type[Any], overrides: dict[str, Any], window: int) -> Any:
    overrides = copy.deepcopy(overrides)
    default = kind()
    values = {field.name: _value(default, field) for field in dataclasses.fields(kind)}
    layers = next((int(values[name]) for name in _LAYERS if isinstance(values.get(name), int)), 0)
    chosen = _choose_layers(values, layers)
    small: dict[str, Any] = {}
    for name, value in values.items():
        if hasattr(value, "to_dict"):
            small[name] = _shrink(type(value), overrides.pop(name, {}), window)
        elif name in _LAYERS and chosen:
            small[name] = len(chosen)
        elif name == "head_dim" and value is None:
            small[name] = 16
        elif name in _SIZE_OF and isinstance(value, int) and not isinstance(value, bool):
            small[name] = min(value, _SIZE_OF[name])
        elif isinstance(value, (list, tuple)) and len(value) == layers > 0:
            small[name] = type(value)(value[at] for at in chosen)
        elif ("vocab_size" in name or name.endswith("_vocab")) and isinstance(value, int):
            small[name] = min(value, VOCABULARY)
        elif name.endswith(("token_id", "token_index")) and isinstance(value, int) and value >= VOCABULARY:
            small[name] = VOCABULARY - 1
        elif name == "eos_token_id" and isinstance(value, list):
            small[name] = [min(item, VOCABULARY - 1) for item in value]
        elif name in _WINDOWS and isinstance(value, int):
            small[name] = min(value, window)
    latent = values.get("kv_lora_rank") is not None  # and that has no groups of heads
    if "num_key_value_heads" in values and (latent or values["num_key_value_heads"] is None):
        small["num_key_value_heads"] = small["num_attention_heads"]
    small.update(overrides)
    return kind(**{name: value for name, value in small.items() if value is not None})


def _value(config: Any, field: dataclasses.Field[Any]) -> Any:
    try:
        return getattr(config, field.name, None)
    except RuntimeError:  # differs from layer to layer
        return None if field.default is dataclasses.MISSING else field.default


def _choose_layers(values: dict[str, Any], layers: int) -> list[int]:
    """Numbers of the layers to keep: the first of each kind that the lists with one entry for each layer tell apart."""
    lists = [v for v in values.values() if isinstance(v, (list, tuple)) and len(v) == layers]
    if layers == 0:
        return []
    kinds: dict[str, int] = {}
    for at in range(layers):
        kinds.setdefault(repr([entries[at] for entries in lists]), at)
    chosen = sorted(kinds.values())[:6]
    extra = (at for at in range(layers) if at not in chosen)
    while len(chosen) < min(2, layers):
        chosen.append(next(extra))
    return sorted(chosen)
