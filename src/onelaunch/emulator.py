"""The graph API of ``torch.cuda`` on a machine without a GPU, under the same names and with the same arguments.

Beyond torch's, a ``CUDAGraph`` has its ``tape``: what was recorded, to read. Under a ``FakeTensorMode`` it records
shapes alone, of steps that would fit into no memory (see ``onelaunch.tape.record_shapes``); such a graph has no replay.

What differs from a GPU:

- A capture that an exception leaves is dropped. torch ends it and keeps the part that was recorded.
- There is one capture at a time in the whole process, and only the thread that began it is listened to. Work that
  another thread issues to a captured stream is not recorded.
- To destroy a graph during the capture of another is refused at once. torch warns of it, and the capture fails later.
- Backward kernels are issued to the stream that is current when ``backward`` is called, not to that of their forward.
- ``replay`` in a capture, events with ``external=True`` in a capture, conditional nodes, ``enable_annotations``,
  ``raw_cuda_graph`` and ``raw_cuda_graph_exec`` are refused, and so is setting a generator's state in a capture.
- A tensor made without ``device=`` counts as the device's, where a GPU program would have it in host memory; only what
  ``torch.tensor(number)`` makes counts as the host's. There is no pinned memory.
- PyTorch itself refuses optimizers with ``capturable=True`` and ``Tensor.record_stream`` on a CPU. With ``fused=True``,
  Adam and AdamW take it.
"""

from __future__ import annotations

from onelaunch.capturing import graph, is_current_stream_capturing
from onelaunch.graphed_callables import make_graphed_callables
from onelaunch.graphs import CUDAGraph
from onelaunch.pools import graph_pool_handle
from onelaunch.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
    synchronize,
)

__all__ = [
    "CUDAGraph",
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
    "set_stream",
    "stream",
    "synchronize",
]
