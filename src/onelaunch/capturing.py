"""``graph``, the context manager of the emulated ``torch.cuda`` that surrounds what is captured."""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar

from onelaunch.graphs import CUDAGraph
from onelaunch.streams import Capture, Stream, StreamContext, captured_stream, synchronize


def is_current_stream_capturing() -> bool:
    """Whether a capture is under way on the current stream."""
    return captured_stream() is not None


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
        if enable_annotations:
            raise NotImplementedError(
                "enable_annotations is not emulated. Each kernel of graph.tape has the line of your code in `where`."
            )
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = Stream()
            stream = graph.default_capture_stream
        self.pool: tuple[()] | tuple[tuple[int, int]] = () if pool is None else (pool,)
        self.capture_stream = stream
        self.stream_ctx = StreamContext(stream)
        self.cuda_graph = cuda_graph
        self.capture_error_mode = capture_error_mode
        self.check_input_liveness = check_input_liveness

    def __enter__(self) -> None:
        if Capture.current is None:
            synchronize()  # as torch does; where a capture is under way, capture_begin says so more clearly
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(
                self.pool[0] if self.pool else None,
                capture_error_mode=self.capture_error_mode,
                check_input_liveness=self.check_input_liveness,
            )
        except BaseException:
            self.stream_ctx.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.cuda_graph.capture_end()
            elif self.cuda_graph._capture is not None:
                self.cuda_graph._stop(failed=True)
        finally:
            if self.cuda_graph._capture is not None:  # it could not be ended here, and nobody else will
                self.cuda_graph._stop(failed=True)
            self.stream_ctx.__exit__(kind, error, traceback)
