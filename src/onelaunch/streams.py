"""Streams and events of the emulated ``torch.cuda``. Work runs at once; kept is who waits for whom in a capture."""

from __future__ import annotations

import threading
import time
from itertools import count
from types import TracebackType
from typing import Any

from onelaunch.tape.rules import CaptureError

_numbers = count(1)
_local = threading.local()


class Capture:
    """The streams of a capture: how many kernels each has issued, and how many of each other one it comes after."""

    current: Capture | None = None

    def __init__(self, origin: Stream) -> None:
        self.origin = origin
        self.seen: dict[int, dict[int, int]] = {origin.stream_id: {}}

    def issue(self, stream: int) -> None:
        self.seen[stream][stream] = self.seen[stream].get(stream, 0) + 1

    def wait(self, stream: int, clock: dict[int, int]) -> None:
        own = self.seen.setdefault(stream, {})
        for other, number in clock.items():
            own[other] = max(own.get(other, 0), number)

    def unjoined(self) -> bool:
        """Whether a side stream has work that the origin does not come after."""
        joined = self.seen[self.origin.stream_id]
        return any(clock.get(stream, 0) > joined.get(stream, 0) for stream, clock in self.seen.items())


def captured_stream() -> int | None:
    """Number of the current stream if it takes part in a capture."""
    capture, number = Capture.current, current_stream().stream_id
    return number if capture is not None and number in capture.seen else None


def _no_waiting(call: str) -> None:
    if Capture.current is not None:
        raise CaptureError("synchronize", call)


class Stream:
    """A stream of work. device and priority are accepted and make no difference here."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.stream_id: int = kwargs.get("stream_id", next(_numbers))
        self.device, self.priority = device, priority

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        _no_waiting("Stream.query()")
        return True

    def synchronize(self) -> None:
        _no_waiting("Stream.synchronize()")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash(self.stream_id)


class Event:
    """A mark in a stream's work."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        self._capture: Capture | None = None
        self._clock: dict[int, int] = {}
        self._seconds = 0.0

    def record(self, stream: Stream | None = None) -> None:
        number = (stream or current_stream()).stream_id
        capture = Capture.current
        self._capture = capture if capture is not None and number in capture.seen else None
        self._clock = dict(capture.seen[number]) if capture is not None and self._capture is not None else {}
        self._seconds = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Make ``stream`` wait. In a capture that takes the stream into it."""
        number = (stream or current_stream()).stream_id
        if self._capture is not None and self._capture is Capture.current:
            self._capture.wait(number, self._clock)
        elif Capture.current is not None and number in Capture.current.seen:
            raise CaptureError("isolation", "waiting for an event")

    def query(self) -> bool:
        _no_waiting("Event.query()")
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two events."""
        return (end_event._seconds - self._seconds) * 1e3

    def synchronize(self) -> None:
        _no_waiting("Event.synchronize()")


class StreamContext:
    """Makes a stream the current one of this thread."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        self._before = current_stream()
        if self.stream is not None:
            _local.stream = self.stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _local.stream = self._before


_default = Stream(stream_id=0)


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread issues to."""
    found: Stream = getattr(_local, "stream", _default)
    return found


def stream(stream: Stream | None) -> StreamContext:
    """``with stream(s):`` issues to ``s``. None changes nothing."""
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Wait for all work, which here is done already. Refused during a capture."""
    _no_waiting("synchronize()")
