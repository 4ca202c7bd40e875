"""The decode step of a model of any size as a tape of shapes: kernels, bytes and lifetimes, without a single weight.

The engine itself is built and captured, on FakeTensors. A model of 70 billion parameters takes seconds and no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from onelaunch.engine.capture import GraphPlan
from onelaunch.engine.engine import Engine
from onelaunch.engine.kvcache import pages_for
from onelaunch.models.config import ModelConfig
from onelaunch.models.loader import empty_model
from onelaunch.tape import Tape

# From the models' config.json on the Hugging Face hub.
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
}


def decode_tapes(
    config: ModelConfig,
    sizes: Sequence[int],
    *,
    max_seq_len: int = 2048,
    dtype: torch.dtype = torch.bfloat16,
    page_size: int = 16,
) -> dict[int, Tape]:
    """The tape of one decode step for each batch size, recorded largest first into one pool.

    The step is the engine's with the gather backend: each request reads ``max_seq_len`` tokens of the cache, which has
    room for that many in the largest batch.

    config: from ``SHAPES`` or from a checkpoint; ``config.shard(ranks)`` is what one GPU of several computes.
    """
    cpu, largest = torch.device("cpu"), max(sizes)
    with FakeTensorMode():
        engine = Engine(
            empty_model(config, cpu, dtype, max_seq_len),
            config,
            device=cpu,
            dtype=dtype,
            graph_plan=GraphPlan("tape", sorted(sizes), "gather"),
            max_running_req=largest,
            max_seq_len=max_seq_len,
            num_pages=largest * pages_for(max_seq_len, page_size),
            page_size=page_size,
        )
    return {size: graph.tape for size, graph in engine.runner.graph_map.items()}  # type: ignore[attr-defined]
