"""The kernels of a large model as PyTorch runs them, without recording every layer: layers are alike.

``onelaunch.engine.shapes.decode_tapes`` records the whole step, which takes seconds for a model of many layers. A sweep
over batches needs it often, so here two and three layers are recorded, and what the third adds is repeated.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import torch

from onelaunch.engine.shapes import decode_tapes
from onelaunch.models.config import ModelConfig
from onelaunch.timeline.roofline import KernelCost, kernel_costs


@lru_cache(maxsize=64)
def tape_costs(
    config: ModelConfig,
    batch: int,
    *,
    max_seq_len: int = 2048,
    context_len: int | None = None,
    dtype: torch.dtype = torch.bfloat16,
) -> tuple[KernelCost, ...]:
    """What ``kernel_costs`` says of the tape of a whole decode step of ``batch`` requests, unfused.

    max_seq_len: as in ``decode_tapes``; context_len: as in ``kernel_costs``. Raises RuntimeError for a model whose
    layers are not alike.
    """

    def recorded(layers: int) -> list[KernelCost]:
        shallow = replace(config, num_hidden_layers=layers)
        tape = decode_tapes(shallow, [batch], max_seq_len=max_seq_len, dtype=dtype)[batch]
        return kernel_costs(tape, context_len)

    if config.num_hidden_layers <= 3:
        return tuple(recorded(config.num_hidden_layers))
    two, three = recorded(2), recorded(3)
    same = next((at for at, (a, b) in enumerate(zip(two, three, strict=False)) if a != b), len(two))
    layer = three[same : same + len(three) - len(two)]
    if two[:same] + layer + two[same:] != three:
        raise RuntimeError("the third layer is not like the second: record the whole model with decode_tapes.")
    return tuple(two[:same] + layer * (config.num_hidden_layers - 2) + two[same:])
