"""Streams and events of the emulated ``torch.cuda``.

Work runs at once, so nothing ever has to be waited for. What is kept is who waits for whom in a capture, because that
is what a graph's edges are made of, and what a capture forbids.
"""

from __future__ import annotations

import threading
import time
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from onelaunch.tape.rules import CaptureError

if TYPE_CHECKING:
    from onelaunch.graphs import CUDAGraph
    from onelaunch.tape import Recorder

CAPTURED_EVENT = "CUDA error: operation not permitted on an event last recorded in a capturing stream"

_numbers = count(1)
_local = threading.local()


class Capture:
    """What a capture knows of streams.

    Each stream that takes part has a front: the kernels that its next one comes after. A kernel becomes the front of
    its stream, an event is a copy of one, and a stream that waits for an event adds that to its own. ``before`` has for
    each kernel the ones directly before it, which are the edges that a GPU records.
    """

    current: Capture | None = None

    def __init__(self, origin: Stream, error_mode: str = "global") -> None:
        self.origin, self.error_mode = origin, error_mode
        self.thread = threading.get_ident()
        self.recorder: Recorder | None = None
        self.graph: CUDAGraph | None = None
        self.fronts: dict[int, frozenset[int]] = {origin.stream_id: frozenset()}
        self.before: list[tuple[int, ...]] = []

    def issue(self, stream: int) -> None:
        """Note a kernel."""
        self.before.append(tuple(sorted(self.fronts[stream])))
        self.fronts[stream] = frozenset((len(self.before) - 1,))

    def wait(self, stream: int, front: frozenset[int]) -> None:
        """Let ``stream`` come after ``front``, which takes it into the capture if it is not in it yet."""
        self.fronts[stream] = self.fronts.get(stream, frozenset()) | front

    def unjoined(self) -> list[int]:
        """The kernels that the stream on which the capture began does not come after."""
        reached: set[int] = set()
        ahead = list(self.fronts[self.origin.stream_id])
        while ahead:
            kernel = ahead.pop()
            if kernel not in reached:
                reached.add(kernel)
                ahead.extend(self.before[kernel])
        return [kernel for kernel in range(len(self.before)) if kernel not in reached]

    def refuse(self, rule: str, call: str, detail: str = "") -> None:
        """Raise CaptureError. The capture is lost, as on a GPU."""
        error = CaptureError(rule, call, detail=detail)
        if self.recorder is None:
            raise error
        self.recorder.refuse(error)


def captured_stream() -> int | None:
    """Number of the current stream if it takes part in a capture."""
    capture, number = Capture.current, current_stream().stream_id
    return number if capture is not None and number in capture.fronts else None


def _no_waiting(call: str, stream: int | None = None) -> None:
    """Refuse a call that waits for ``stream``, or for the whole device where None, if a capture forbids it.

    Asking after work outside of the capture is an unsafe call, about which ``capture_error_mode`` decides.
    """
    capture = Capture.current
    if capture is None:
        return
    outside = stream is not None and stream not in capture.fronts
    elsewhere = threading.get_ident() != capture.thread
    if outside and (capture.error_mode == "relaxed" or (capture.error_mode == "thread_local" and elsewhere)):
        return
    capture.refuse("synchronize", call)


def no_destroying(call: str) -> None:
    """Refuse the end of a graph during the capture of another, as ``capture_error_mode`` has it.

    PyTorch warns where that happens, and the capture fails later on (pytorch/pytorch#161037); here the call itself
    raises.
    """
    capture = Capture.current
    if capture is None or capture.error_mode == "relaxed":
        return
    if capture.error_mode == "global" or threading.get_ident() == capture.thread:
        capture.refuse("graph-destroyed", call)


class Stream:
    """A stream of work. Every device and priority is accepted and makes no difference here."""

    device_index = 0
    device_type = 0

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.stream_id: int = kwargs["stream_id"] if "stream_id" in kwargs else next(_numbers)
        self.device = torch.device("cpu")
        self.priority = priority
        self._entered: list[StreamContext] = []

    @property
    def cuda_stream(self) -> int:
        """A number in the place of the ``cudaStream_t``, 0 for the default stream as there."""
        return self.stream_id

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Lowest and highest priority: there is one."""
        return 0, 0

    def wait_event(self, event: Event) -> None:
        """Let all later work of this stream come after ``event``."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let all later work of this stream come after what ``stream`` has so far."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Mark this point of the stream with ``event``, or with a new one."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all work is done, which it is."""
        _no_waiting("Stream.query()", self.stream_id)
        return True

    def synchronize(self) -> None:
        """Wait for this stream's work, which is done."""
        _no_waiting("Stream.synchronize()", self.stream_id)

    def is_capturing(self) -> bool:
        """Whether this stream takes part in a capture."""
        return Capture.current is not None and self.stream_id in Capture.current.fronts

    def __enter__(self) -> Stream:
        self._entered.append(StreamContext(self))
        self._entered[-1].__enter__()
        return self

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.pop().__exit__(type, value, traceback)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash(self.stream_id)

    def __repr__(self) -> str:
        return f"<onelaunch.emulator.Stream {self.stream_id}>"


class Event:
    """A mark in a stream's work. blocking and interprocess are accepted and make no difference here."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        self.device = torch.device("cpu")
        self._timed, self._external = enable_timing, external
        self._capture: Capture | None = None  # where it was last recorded, if that was in a capture
        self._front: frozenset[int] = frozenset()
        self._stream: int | None = None
        self._seconds = 0.0

    @property
    def cuda_event(self) -> int:
        """A number in the place of the ``cudaEvent_t``, 0 until the event is recorded as there."""
        return 0 if self._stream is None else id(self)

    def record(self, stream: Stream | None = None) -> None:
        """Mark what ``stream``, or the current stream, has so far."""
        number = (stream or current_stream()).stream_id
        capture = Capture.current
        if capture is None or number not in capture.fronts:
            self._capture = None
        elif self._external:
            capture.refuse("not-emulated", "Event.record()", "the event is external, so each replay should record it")
        else:
            self._capture, self._front = capture, capture.fronts[number]
        self._stream = number
        self._seconds = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Make ``stream``, or the current stream, wait. In a capture that takes the stream into it."""
        number = (stream or current_stream()).stream_id
        capture = Capture.current
        if capture is None or self._stream is None:  # an event that was never recorded is not waited for
            return
        if self._capture is capture:
            if number == _default.stream_id:
                capture.refuse("not-emulated", "Event.wait()", "the default stream cannot take part in a capture")
            capture.wait(number, self._front)
        elif number in capture.fronts:
            capture.refuse("isolation", "waiting for an event")

    def query(self) -> bool:
        """Whether the work before the mark is done, which it is."""
        self._asked("Event.query()")
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two events. Here that is the time of the host, which did the work itself."""
        for event in (self, end_event):
            event._asked("Event.elapsed_time()")
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._stream is None or end_event._stream is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._seconds - self._seconds) * 1e3

    def synchronize(self) -> None:
        """Wait for the work before the mark, which is done."""
        self._asked("Event.synchronize()")

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> Event:
        """Not emulated."""
        raise NotImplementedError("Event.from_ipc_handle() is not emulated: there is no device to share.")

    def ipc_handle(self) -> bytes:
        """Not emulated."""
        raise NotImplementedError("Event.ipc_handle() is not emulated: there is no device to share.")

    def _asked(self, call: str) -> None:
        if self._stream is None:
            return
        _no_waiting(call, self._stream)
        if self._capture is not None:
            raise RuntimeError(
                f"{call} was asked of an event that was last recorded in a capture, where nothing ran that it could "
                f"tell of. Record it before the capture or around replay().\nOn a GPU the error reads: {CAPTURED_EVENT}"
            )


class StreamContext:
    """Makes a stream the current one of this thread. None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self._before = current_stream()
            set_stream(self.stream)

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.stream is not None:
            set_stream(self._before)


_default = Stream(stream_id=0)


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread issues to."""
    found: Stream = getattr(_local, "stream", _default)
    return found


def default_stream(device: Any = None) -> Stream:
    """The stream that is current where nobody chose one. It cannot be captured."""
    return _default


def set_stream(stream: Stream) -> None:
    """Make ``stream`` the current one of this thread. ``with stream(s):`` does that and undoes it."""
    if stream is not None:
        _local.stream = stream


def stream(stream: Stream | None) -> StreamContext:
    """``with stream(s):`` issues to ``s``. None changes nothing."""
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Wait for all work, which here is done already. Refused during a capture."""
    _no_waiting("synchronize()")
