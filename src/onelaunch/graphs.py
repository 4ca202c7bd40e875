"""``CUDAGraph`` of the emulated ``torch.cuda``: it records a tape and replays it."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import torch

from onelaunch.liveness import InputLiveness
from onelaunch.pools import handle_of, pool_of
from onelaunch.streams import (
    Capture,
    captured_stream,
    current_stream,
    default_stream,
    no_destroying,
)
from onelaunch.tape import Buffer, CaptureError, Executor, Pool, PoolHandle, Recorder, Tape, make_executor
from onelaunch.tape.dot import to_dot


class CUDAGraph:
    """A recorded graph. keep_graph: make what replays it at ``instantiate`` or the first replay, not at once.

    tape: what was recorded, or None before a capture and after ``reset``.
    """

    _debug: ClassVar[bool] = False

    def __init__(self, keep_graph: bool = False) -> None:
        self.keep_graph = keep_graph
        self.tape: Tape | None = None
        self._generators: list[torch.Generator] = []
        self._capture: Capture | None = None
        self._executor: Executor | None = None
        self._liveness: InputLiveness | None = None

    def __del__(self) -> None:
        if self._capture is not None:
            self._stop(failed=True)
        elif self._executor is not None:
            with suppress(CaptureError):  # the capture is lost, and there is nobody to tell
                no_destroying("the end of a CUDAGraph that nobody holds any more")

    def register_generator_state(self, generator: torch.Generator) -> None:
        """Let random operations of the capture use ``generator``; each replay advances it. ``reset`` forgets it."""
        self._generators.append(generator)

    def capture_begin(
        self,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "global",
        check_input_liveness: bool = False,
    ) -> None:
        """Begin to record this thread's work. Use ``graph`` instead, which ends it too.

        check_input_liveness: let ``replay`` raise RuntimeError where memory that the step found outside has no owner
        any more. Without it a replay goes on with what was there last; on a GPU it would read whatever is there now.
        """
        if self.tape is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError(
                "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got " + capture_error_mode
            )
        if Capture.current is not None:
            Capture.current.refuse("nested-capture", "capture_begin()")
        origin = current_stream()
        if origin == default_stream():
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. "
                "(However, after capture, it's ok to replay them on the default stream.)"
            )
        memory = pool_of(pool)
        capture = Capture(origin, capture_error_mode)
        self._liveness = InputLiveness() if check_input_liveness else None
        meet = self._liveness.meet if self._liveness is not None else None
        capture.recorder = self._make_recorder(memory, capture, meet)
        capture.graph = self
        self._capture = Capture.current = capture
        capture.recorder.start()

    def capture_end(self) -> None:
        """End the recording. Raises CaptureError where it was refused or a stream was not joined."""
        capture = self._capture
        if capture is None:
            raise RuntimeError("capture_end() was called without capture_begin(). Use `with cuda.graph(g):`.")
        if threading.get_ident() != capture.thread:
            raise RuntimeError(
                "capture_end() was called in another thread than capture_begin(). Call it where the capture began.\n"
                "On a GPU the error reads: CUDA error: attempt to terminate a thread-local capture sequence from "
                "another thread"
            )
        if current_stream() != capture.origin:
            raise RuntimeError("Capture must end on the same stream it began on.")
        failed = capture.recorder is not None and capture.recorder.invalid
        unjoined = bool(capture.unjoined())
        tape = self._stop(failed or unjoined)
        if failed or unjoined:
            raise CaptureError("invalidated" if failed else "unjoined-stream", "the end of the capture")
        if not tape.kernels:
            warnings.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong "
                "device or stream.",
                stacklevel=2,
            )
        if self._liveness is not None:
            self._liveness.let_go()
        self.tape, self._before = tape, capture.before
        tape.pool.users.add(tape)
        weakref.finalize(tape, tape.pool.give_back).atexit = False  # who keeps the tape alone can still read its plan
        if not self.keep_graph and not tape.shapes_only:
            self.instantiate()

    def instantiate(self) -> None:
        """Make what replays the graph."""
        if self.tape is None:
            raise RuntimeError("capture_end() must have been called before calling instantiate")
        if self._executor is not None and not self.keep_graph:
            raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")
        self._executor = make_executor(self.tape)

    def replay(self) -> None:
        """Run the recorded kernels on what their addresses hold now."""
        tape = self._captured("replay")
        if Capture.current is not None and captured_stream() is not None:
            Capture.current.refuse("not-emulated", "replay() during a capture")
        if self._liveness is not None:
            self._liveness.check()
        if self._executor is None:
            self.instantiate()
        assert self._executor is not None
        tape.reveal()
        self._executor.run()

    def reset(self) -> None:
        """Let go of the graph, and of its memory where no other graph shares it and no tensor is on it."""
        if self._capture is not None:
            self._stop(failed=True)
        elif self._executor is not None:
            no_destroying("CUDAGraph.reset()")
        tape, self.tape, self._executor, self._liveness = self.tape, None, None, None
        self._generators = []
        if tape is not None:
            tape.pool.users.discard(tape)
            tape.pool.give_back()

    def pool(self) -> PoolHandle:
        """Token of this graph's memory, to pass to another capture as ``pool=``."""
        return handle_of(self._captured("pool()").pool)

    @property
    def executor(self) -> str | None:
        """Which executor replays it, "auto" while the first replays find out the fastest, None before there is one."""
        return None if self._executor is None else self._executor.name

    def enable_debug_mode(self) -> None:
        """Let ``debug_dump`` write, for all graphs, as in torch. Graphs with ``keep_graph`` need it not."""
        CUDAGraph._debug = True

    def debug_dump(self, debug_path: str) -> None:
        """Write the kernels and what they wait for to ``debug_path``, in Graphviz's DOT language.

        An edge means that one of the two kernels writes what the other reads or writes. What a GPU writes there is the
        order of the streams, in which the kernels of one stream are a chain; ``get_graph_data`` has that.
        """
        tape = self._captured("debug_dump")
        if not (CUDAGraph._debug or self.keep_graph):
            warnings.warn(
                "CUDA Graphs debug not enabled, set with [graph].enable_debug_mode(): nothing was written.",
                stacklevel=2,
            )
            return
        with open(debug_path, "w", encoding="utf-8") as file:
            file.write(to_dot(tape))

    def raw_cuda_graph(self) -> int:
        """Not emulated: there is no ``cudaGraph_t``."""
        if not self.keep_graph:
            raise RuntimeError(
                "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with keep_graph=true"
            )
        if self.tape is None:
            raise RuntimeError("You cannot access the raw cudaGraph_t instance until capture_end() has been called")
        raise NotImplementedError(
            "raw_cuda_graph() is not emulated: there is no cudaGraph_t without a GPU. Read graph.tape.kernels and "
            "graph.tape.dag(), or get_graph_data()."
        )

    def raw_cuda_graph_exec(self) -> int:
        """Not emulated: there is no ``cudaGraphExec_t``."""
        if self._executor is None:
            raise RuntimeError("You cannot access the raw cudaGraphExec_t instance until instantiate() has been called")
        raise NotImplementedError(
            "raw_cuda_graph_exec() is not emulated: there is no cudaGraphExec_t without a GPU. Read graph.tape."
        )

    def get_graph_data(self) -> dict[str, Any]:
        """The kernels and the order that the streams gave them, as torch describes a graph's nodes.

        ``dependencies`` and ``dependents`` are positions in ``nodes``. The ids only number the kernels.
        """
        if not self.keep_graph or self._executor is None:
            raise RuntimeError(
                "get_graph_data() needs a graph with keep_graph=True that was captured and instantiated. Make it "
                "CUDAGraph(keep_graph=True) and call instantiate() after the capture."
            )
        nodes = [
            {
                "index": kernel.index,
                "node_type": "kernel",
                "tools_id": kernel.index,
                "graph_id": 0,
                "node_id": kernel.index,
                "kernel_name": kernel.name,
                "dependencies": list(self._before[kernel.index]),
                "dependents": [after for after, before in enumerate(self._before) if kernel.index in before],
            }
            for kernel in self._captured("get_graph_data").kernels
        ]
        return {"exec_graph_id": 0, "nodes": nodes}

    @staticmethod
    def get_currently_capturing_graph() -> CUDAGraph:
        """The graph that the current stream is being captured into."""
        graph = Capture.current.graph if Capture.current is not None else None
        if graph is None or captured_stream() is None:
            raise RuntimeError("The current stream is not currently capturing.")
        return graph

    def begin_capture_to_if_node(self, scalar_cuda_pred_tensor: torch.Tensor) -> None:
        """Not emulated."""
        raise NotImplementedError(
            "Conditional nodes are not emulated. Compute both branches and choose with torch.where."
        )

    def end_capture_to_conditional_node(self) -> None:
        """Not emulated."""
        raise NotImplementedError(
            "Conditional nodes are not emulated. Compute both branches and choose with torch.where."
        )

    def _make_recorder(
        self, pool: Pool, capture: Capture, meet: Callable[[Buffer, torch.Tensor], None] | None
    ) -> Recorder:
        return Recorder(pool, captured_stream, capture.issue, self._generators, meet)

    def _captured(self, call: str) -> Tape:
        if self.tape is None:
            raise RuntimeError(f"Called CUDAGraph::{call} without a preceding successful capture.")
        return self.tape

    def _stop(self, failed: bool) -> Tape:
        """End the capture under way. After a failure everything is as it was before."""
        capture, self._capture, Capture.current = self._capture, None, None
        assert capture is not None
        assert capture.recorder is not None
        recorder, capture.recorder, capture.graph = capture.recorder, None, None
        whole = False
        try:
            tape = recorder.stop(failed)
            whole = not failed
        finally:
            if not whole:
                self._liveness = None
                recorder.pool.give_back()
        return tape
