"""The decode step of a model of any size as a tape of shapes: kernels, bytes and lifetimes, without a single weight.

The engine itself is built and captured, on FakeTensors. A model of 70 billion parameters takes seconds and no memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from onelaunch.engine.capture import GraphPlan
from onelaunch.engine.engine import Engine
from onelaunch.engine.kvcache import pages_for
from onelaunch.models.config import ModelConfig
from onelaunch.models.loader import empty_model
from onelaunch.models.shapes import SHAPES
from onelaunch.tape import Tape

__all__ = ["SHAPES", "decode_tapes"]


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
