"""The engine's decode step from shapes alone equals the one that is recorded with memory, at any size of model."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest
import torch
from tape_plan import plan

from onelaunch import LLM
from onelaunch.engine.shapes import SHAPES, decode_tapes
from onelaunch.models.layers import MergedLinear
from onelaunch.models.loader import RANDOM
from onelaunch.padding import capture_sizes

LLAMA_70B = SHAPES["meta-llama/Meta-Llama-3-70B"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_shapes_give_the_tapes_that_the_engine_records(
    family: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    # oneDNN's packed weights are a choice of this CPU, not of the model.
    monkeypatch.setattr(MergedLinear, "load", lambda self, weights, biases: self.weight.copy_(weights[0].t()))
    sizes = [1, 3, 8]
    with LLM(
        f"random:{family}",
        device="cpu",
        dtype=dtype,
        cuda_graph_bs=sizes,
        max_running_req=8,
        max_seq_len_override=64,
        num_page_override=8 * 4,
    ) as llm:
        real = {size: graph.tape for size, graph in llm.engine.runner.graph_map.items()}
        found = decode_tapes(RANDOM[family], sizes, max_seq_len=64, dtype=dtype)
        assert list(found) == [8, 3, 1]
        for size in sizes:
            assert found[size].shapes_only
            assert plan(found[size]) == plan(real[size])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("meta-llama/Llama-2-7b-hf", 6_738_415_616),
        ("meta-llama/Meta-Llama-3-8B", 8_030_261_248),
        ("meta-llama/Meta-Llama-3-70B", 70_553_706_496),
    ],
)
def test_weights_cache_and_kernels_of_large_models_are_what_their_shapes_say(name: str, parameters: int) -> None:
    config = SHAPES[name]
    tape = decode_tapes(config, [2], max_seq_len=512)[2]

    def nbytes(kind: str) -> int:
        return sum(buffer.nbytes for buffer in tape.buffers if buffer.kind == kind)

    assert nbytes("weight") == 2 * parameters
    tokens = 2 * 512 + 16  # the dummy request has a page of its own
    cache = 2 * tokens * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * 2
    logits = 2 * config.vocab_size * 4
    assert nbytes("state") == cache + logits
    small = decode_tapes(replace(RANDOM["llama"], num_hidden_layers=config.num_hidden_layers), [2], max_seq_len=512)[2]
    assert [kernel.name for kernel in tape.kernels] == [kernel.name for kernel in small.kernels]


def test_the_plan_of_a_pool_outlives_the_engine_that_made_it() -> None:
    tapes = decode_tapes(RANDOM["llama"], [1, 4], max_seq_len=64)
    gc.collect()
    assert tapes[4].pool.reserved_bytes >= tapes[4].pool.peak_bytes > 0
    assert tapes[4].pool is tapes[1].pool


def test_a_rank_of_eight_holds_an_eighth_of_what_is_divided() -> None:
    whole, rank = (decode_tapes(config, [1], max_seq_len=64)[1] for config in (LLAMA_70B, LLAMA_70B.shard(8)))
    norms = (2 * LLAMA_70B.num_hidden_layers + 1) * LLAMA_70B.hidden_size * 2  # every rank has them whole
    of_whole, of_rank = (sum(b.nbytes for b in t.buffers if b.kind == "weight") for t in (whole, rank))
    assert 8 * (of_rank - norms) == of_whole - norms
    assert len(rank.kernels) == len(whole.kernels)
    assert LLAMA_70B.shard(16).num_key_value_heads == 1
    for ranks, what in ((3, "num_attention_heads=64"), (128, "num_attention_heads=64")):
        with pytest.raises(ValueError, match=what):
            LLAMA_70B.shard(ranks)


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_fifteen_sizes_in_one_pool_take_what_the_largest_takes_alone(family: str) -> None:
    sizes = capture_sizes(96)
    assert len(sizes) == 15
    config = replace(RANDOM[family], hidden_size=256, intermediate_size=1024)
    alone, shared = (
        decode_tapes(config, chosen, max_seq_len=128, dtype=torch.float32)[96].pool for chosen in ([96], sizes)
    )
    assert shared.reserved_bytes <= 1.05 * alone.reserved_bytes
    assert shared.peak_bytes <= 1.05 * alone.peak_bytes
    assert shared.naive_bytes > 20 * shared.peak_bytes
