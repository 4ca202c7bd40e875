"""The graph API of ``torch.cuda`` on a machine without a GPU, under the same names and with the same arguments.

Beyond torch's, a ``CUDAGraph`` has its ``tape``: what was recorded, to read.
"""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import Any, ClassVar

import torch

from onelaunch.streams import (
    Capture,
    Event,
    Stream,
    StreamContext,
    captured_stream,
    current_stream,
    stream,
    synchronize,
)
from onelaunch.tape import CaptureError, Executor, Pool, PoolHandle, Recorder, Tape, make_executor

__all__ = [
    "CUDAGraph",
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "stream",
    "synchronize",
]

_pools: weakref.WeakValueDictionary[tuple[int, int], Pool] = weakref.WeakValueDictionary()


def graph_pool_handle() -> PoolHandle:
    """A token for a new memory pool that graphs can share."""
    pool = Pool()
    _pools[tuple(pool.handle)] = pool  # type: ignore[index]  # a pair of numbers, as the handle is
    return pool.handle


def is_current_stream_capturing() -> bool:
    """Whether a capture is under way on the current stream."""
    return captured_stream() is not None


class CUDAGraph:
    """A recorded graph. keep_graph: make what replays it at ``instantiate`` or the first replay, not at once."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.keep_graph = keep_graph
        self.tape: Tape | None = None
        self._generators: list[torch.Generator] = []
        self._recorder: Recorder | None = None
        self._executor: Executor | None = None

    def register_generator_state(self, generator: torch.Generator) -> None:
        """Let random operations of the capture use ``generator``; each replay advances it."""
        self._generators.append(generator)

    def capture_begin(
        self,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "global",
        check_input_liveness: bool = False,
    ) -> None:
        """Begin to record this thread's work. Use ``graph`` instead, which ends it too."""
        if self.tape is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        if check_input_liveness:
            raise NotImplementedError("check_input_liveness is not emulated: pass False.")
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError(
                "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got " + capture_error_mode
            )
        if Capture.current is not None:
            raise CaptureError("nested-capture", "capture_begin()")
        origin = current_stream()
        if origin.stream_id == 0:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. "
                "(However, after capture, it's ok to replay them on the default stream.)"
            )
        memory = Pool() if pool is None else pool.memory if isinstance(pool, PoolHandle) else _pools[pool]
        Capture.current = Capture(origin)
        self._recorder = Recorder(memory, captured_stream, Capture.current.issue, self._generators)
        self._recorder.start()

    def capture_end(self) -> None:
        """End the recording. Raises CaptureError where it was refused or a stream was not joined."""
        recorder, capture = self._recorder, Capture.current
        if recorder is None or capture is None:
            raise RuntimeError("capture_end was called without capture_begin. Use `with cuda.graph(g):`.")
        self._recorder = None
        failed, unjoined = recorder.invalid, capture.unjoined()
        Capture.current = None
        tape = recorder.stop(failed or unjoined)
        if failed or unjoined:
            raise CaptureError("invalidated" if failed else "unjoined-stream", "the end of the capture")
        self.tape = tape
        if not self.keep_graph and not tape.shapes_only:
            self.instantiate()

    def instantiate(self) -> None:
        """Make what replays the graph."""
        self._executor = make_executor(self._captured("instantiate"))

    def replay(self) -> None:
        """Run the recorded kernels on what their addresses hold now."""
        tape = self._captured("replay")
        if Capture.current is not None:
            raise CaptureError("not-emulated", "replay() during a capture")
        if self._executor is None:
            self.instantiate()
        assert self._executor is not None
        tape.reveal()
        self._executor.run()

    def reset(self) -> None:
        """Let go of the graph."""
        self.tape = self._executor = None

    def pool(self) -> PoolHandle:
        """Token of this graph's memory, to pass to another capture as ``pool=``."""
        return self._captured("pool").pool.handle

    @property
    def executor(self) -> str | None:
        """Which executor replays it, "auto" while the first replays find out the fastest, None before there is one."""
        return None if self._executor is None else self._executor.name

    def _captured(self, call: str) -> Tape:
        if self.tape is None:
            raise RuntimeError(f"Called CUDAGraph::{call} without a preceding successful capture.")
        return self.tape

    def _abort(self) -> None:
        recorder, self._recorder = self._recorder, None
        Capture.current = None
        if recorder is not None:
            recorder.stop(failed=True)


class graph:
    """``with graph(g): out = step()`` records ``step`` into ``g``. Nothing is written until ``g.replay()``."""

    default_capture_stream: ClassVar[Stream | None] = None

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: tuple[int, int] | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        check_input_liveness: bool = False,
    ) -> None:
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = Stream()
            stream = graph.default_capture_stream
        self.cuda_graph, self.pool, self.capture_stream = cuda_graph, pool, stream
        self.arguments: dict[str, Any] = {
            "capture_error_mode": capture_error_mode,
            "check_input_liveness": check_input_liveness,
        }
        self.stream_ctx = StreamContext(stream)

    def __enter__(self) -> None:
        synchronize()
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, **self.arguments)
        except BaseException:
            self.stream_ctx.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph._abort()
        finally:
            self.stream_ctx.__exit__(kind, error, traceback)
