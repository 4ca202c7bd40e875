"""The kernels of an engine that fuses."""

from dataclasses import replace

import pytest

from onelaunch.models.shapes import OTHER_SHAPES, SHAPES
from onelaunch.timeline.fusion import Fusion, fused_costs
from onelaunch.timeline.published import engine_parameters

LLAMA_8B = SHAPES["meta-llama/Meta-Llama-3-8B"]
QWEN_4B = SHAPES["Qwen/Qwen3-4B"]


def layer(fusion: Fusion, family: str = "llama") -> int:
    """How many kernels one layer more is."""
    config = {"llama": LLAMA_8B, "qwen3": QWEN_4B, "gpt2": OTHER_SHAPES["openai-community/gpt2"]}[family]
    two, three = (len(fused_costs(replace(config, num_hidden_layers=n), 1, 100, fusion=fusion)) for n in (2, 3))
    return three - two


def test_each_engine_has_as_many_kernels_in_a_layer_as_it_says() -> None:
    assert layer(engine_parameters("pegainfer").fusion, "qwen3") == 11  # its author counts 11
    assert layer(engine_parameters("vLLM, SGLang").fusion) == 10
    assert layer(engine_parameters("vLLM, SGLang").fusion, "gpt2") == 9  # no rotation
    assert layer(Fusion()) == 9


def test_pegainfer_has_401_kernels_less_the_one_that_its_list_does_not_name() -> None:
    # 36 x 11, embedding, last norm, logits, choice of the token; the author says "about 401".
    assert len(fused_costs(QWEN_4B, 1, 100, fusion=engine_parameters("pegainfer").fusion)) == 400


def test_what_is_fused_less_costs_more_kernels_and_the_same_weights() -> None:
    base = Fusion()
    for more, kernels in (
        ({"qkv": False}, 2),
        ({"gate_up": False}, 1),
        ({"gate": "two"}, 1),
        ({"add_norm": False}, 2),
        ({"kv_write": "own"}, 1),
        ({"attention_kernels": 3}, 2),
        ({"rope_kernels": 4}, 3),
        ({"norm_kernels": 8}, 14),
        ({"product_kernels": 2}, 4),
    ):
        fusion = replace(base, **more)
        assert layer(fusion) == layer(base) + kernels, more
        weights = [
            sum(c.bytes for c in fused_costs(LLAMA_8B, 1, 9, fusion=f) if c.kind == "matmul") for f in (base, fusion)
        ]
        assert weights[1] == pytest.approx(weights[0], rel=1e-3)
    assert layer(replace(base, qk_norm="own"), "qwen3") == layer(base, "qwen3") + 2


def test_copying_keys_for_every_query_head_moves_five_times_the_cache() -> None:
    def cache(repeat: bool) -> int:
        costs = fused_costs(QWEN_4B, 1, 100_000, fusion=Fusion(repeat_kv=repeat))
        return sum(c.bytes for c in costs if "keys" in c.name or c.kind == "attention")

    # 4 query heads share a key head: read once, written four times, read four times.
    assert cache(True) / cache(False) == pytest.approx(9, rel=0.01)


def test_four_bit_weights_are_a_quarter_and_the_last_product_may_not_be() -> None:
    def weights(**sizes: float) -> dict[str, int]:
        return {c.name: c.bytes for c in fused_costs(LLAMA_8B, 1, 1, **sizes) if c.kind == "matmul"}  # type: ignore[arg-type]

    whole, quarter = weights(), weights(weight_bytes=0.5, logits_weight_bytes=2.0)
    assert quarter["down"] == pytest.approx(whole["down"] / 4, rel=0.01)
    assert quarter["logits"] == whole["logits"]


def test_a_rank_of_eight_reads_an_eighth_and_sums_twice_a_layer() -> None:
    whole, rank = fused_costs(LLAMA_8B, 1, 100), fused_costs(LLAMA_8B, 1, 100, ranks=8, all_reduce_us=9)
    sums = [c for c in rank if c.kind == "all_reduce"]
    assert len(sums) == 2 * 32
    assert {c.extra_us for c in sums} == {9}
    weights = [sum(c.bytes for c in costs if c.kind == "matmul") for costs in (whole, rank)]
    assert weights[1] == pytest.approx(weights[0] / 8, rel=0.01)


def test_a_fusion_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="attention"):
        Fusion(rope="attention", kv_write="rope")
    with pytest.raises(ValueError, match="norm_kernels"):
        Fusion(norm_kernels=0)
    with pytest.raises(ValueError, match="context_len"):
        fused_costs(LLAMA_8B, 1, 0)


@pytest.mark.parametrize(
    ("model", "billions"),  # as the model cards say, or the paper
    [
        ("meta-llama/Llama-2-7b-hf", 6.74),
        ("meta-llama/Meta-Llama-3-8B", 8.03),
        ("meta-llama/Meta-Llama-3-70B", 70.6),
        ("Qwen/Qwen3-0.6B", 0.596),
        ("Qwen/Qwen3-1.7B", 1.72),
        ("Qwen/Qwen3-4B", 4.02),
        ("Qwen/Qwen3-8B", 8.19),
        ("deepseek-ai/deepseek-coder-1.3b-base", 1.35),
        ("deepseek-ai/deepseek-llm-67b-base", 67.4),
        ("openai-community/gpt2", 0.124),
        ("facebook/opt-175b", 174.6),
        ("Qwen/Qwen2.5-32B-Instruct", 32.8),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1.78),
    ],
)
def test_shapes_have_as_many_weights_as_their_models(model: str, billions: float) -> None:
    config = {**SHAPES, **OTHER_SHAPES}[model]
    products = sum(c.operations for c in fused_costs(config, 1, 1) if c.kind == "matmul") / 2
    tied = config.tie_word_embeddings or config.family in ("gpt2", "opt")
    embedding = 0 if tied else config.vocab_size * config.hidden_size
    assert (products + embedding) / 1e9 == pytest.approx(billions, rel=0.01)
