"""The graph API of ``torch.cuda`` on whatever machine this is: real where there is a GPU, emulated where not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

__all__ = [
    "CUDAGraph",
    "Event",
    "Stream",
    "current_stream",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "is_emulated",
    "stream",
    "synchronize",
]

is_emulated = not torch.cuda.is_available()

if TYPE_CHECKING or is_emulated:
    from onelaunch.emulator import (
        CUDAGraph,
        Event,
        Stream,
        current_stream,
        graph,
        graph_pool_handle,
        is_current_stream_capturing,
        stream,
        synchronize,
    )
else:
    from torch.cuda import (
        CUDAGraph,
        Event,
        Stream,
        current_stream,
        graph,
        graph_pool_handle,
        is_current_stream_capturing,
        stream,
        synchronize,
    )
