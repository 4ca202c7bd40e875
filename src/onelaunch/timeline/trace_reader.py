"""Reads the events of a profiler's trace one after the other, so that a file of 1 GB never lies in memory as a whole.

A torch.profiler trace is one JSON object whose ``traceEvents`` is an array of millions of small objects. The text is
decoded in pieces of a megabyte and each event is handed on as soon as its last bracket has been read. What is no such
file is refused with one sentence that says what it is instead.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

CHUNK = 1 << 20  # characters
# An event or an entry of the header that is longer is no profiler's: without a limit, a foreign file fills the memory.
LONGEST = 64 << 20

_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder(strict=False)  # kernels' names may hold control characters


class TraceError(ValueError):
    """A file that cannot be read as a trace. The text says what it is, and what to do."""


class TruncatedTraceError(TraceError):
    """A trace that ends before its time: still being written, or copied in part."""


class TraceFile:
    """The events of one file, plain or gzip, by iterating over it.

    path: a torch.profiler trace, or any Chrome trace, also the bare array of events.
    metadata: what stands beside the events (``deviceProperties``, ``distributedInfo``, ...), complete once all events
    were read.
    events: how many events were read so far.

    Iterating raises TraceError where the file is missing, unreadable or no trace, TruncatedTraceError where it ends
    early.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.metadata: dict[str, Any] = {}
        self.events = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.metadata, self.events = {}, 0
        try:
            with _open(self.path) as file:
                yield from self._events(_Text(file))
        except EOFError as error:  # gzip's word for a file without its end
            raise self._cut_off() from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise TraceError(
                f"{self.path} is damaged: unpacking it failed after {self.events:,} events ({error}). Copy it again."
            ) from error
        except _EndOfText as error:
            raise self._cut_off() from error
        except json.JSONDecodeError as error:
            raise TraceError(
                f"{self.path} is not valid JSON after {self.events:,} events ({error.msg}). Profile again; a file that "
                "was edited or written by two processes reads like this."
            ) from error
        except _TooLong as error:
            raise TraceError(
                f"{self.path} is JSON, but no trace: behind {self.events:,} events stands an entry of more than "
                f"{LONGEST >> 20} MB, which no profiler writes."
            ) from error
        except OSError as error:
            raise TraceError(f"{self.path} cannot be read: {error.strerror or error}.") from error

    def _cut_off(self) -> TruncatedTraceError:
        return TruncatedTraceError(
            f"{self.path} is cut off: it ends in the middle, after {self.events:,} events. Copy it again, or wait "
            "until the profiler has written it."
        )

    def _events(self, text: _Text) -> Iterator[dict[str, Any]]:
        first = text.peek()
        if first == "[":
            yield from self._array(text)
            return
        if first != "{":
            raise TraceError(_what_it_is(self.path, text))
        found = False
        text.take("{")
        while text.peek() != "}":
            key = text.value()
            text.take(":")
            if key == "traceEvents" and text.peek() == "[":
                found = True
                yield from self._array(text)
            else:
                self.metadata[str(key)] = text.value()
            if text.peek() != "}":
                text.take(",")
        if not found:
            raise TraceError(
                f"{self.path} is JSON, but no trace: it has no traceEvents. onelaunch trace reads what "
                "torch.profiler's export_chrome_trace or tensorboard_trace_handler writes."
            )

    def _array(self, text: _Text) -> Iterator[dict[str, Any]]:
        text.take("[")
        while text.peek() != "]":
            event = text.value()
            self.events += 1
            if isinstance(event, dict):
                yield event
            if text.peek() != "]":
                text.take(",")
        text.take("]")


class _EndOfText(Exception):
    """The text ended where more of it had to come."""


class _TooLong(Exception):
    """An entry is longer than any of a profiler's."""


class _Text:
    """A window that moves over the file's text: what was decoded is dropped, more is read when it is needed."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.window, self.at, self.ended = "", 0, False

    def more(self, size: int) -> bool:
        """Read on. False at the file's end."""
        piece = "" if self.ended else self.file.read(size)
        self.ended = self.ended or not piece
        self.window, self.at = self.window[self.at :] + piece, 0
        return not self.ended

    def peek(self) -> str:
        """The next character that is no space. Raises _EndOfText at the end."""
        while True:
            match = _SPACE.match(self.window, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.window):
                return self.window[self.at]
            if not self.more(CHUNK):
                raise _EndOfText

    def take(self, character: str) -> None:
        if self.peek() != character:
            raise json.JSONDecodeError(f"expected {character!r}, found {self.peek()!r}", self.window, self.at)
        self.at += 1

    def value(self) -> Any:
        """The JSON value that begins here, reading on until it is complete."""
        self.peek()
        size = CHUNK
        while True:
            try:
                value, end = _DECODER.raw_decode(self.window, self.at)
                if end < len(self.window) or self.ended:  # else a number might go on
                    self.at = end
                    return value
            except json.JSONDecodeError as error:
                if self.ended:
                    # What is wrong at the very end is missing; what is wrong before it is wrong.
                    if error.pos >= len(self.window) - 8 or error.msg.startswith("Unterminated string"):
                        raise _EndOfText from error
                    raise
                if _is_wrong(error, self.window):
                    raise
                if len(self.window) - self.at > LONGEST:
                    raise _TooLong from error
            self.more(size)
            size *= 2  # so that a long value is not decoded again for every chunk


def _is_wrong(error: json.JSONDecodeError, window: str) -> bool:
    """Whether more text could not mend what was found. Near the window's end it could."""
    return not error.msg.startswith("Unterminated string") and error.pos < len(window) - 64


def _open(path: Path) -> IO[str]:
    """The file's text, unpacked if it begins as gzip does, whatever its name."""
    if path.is_dir():
        raise TraceError(f"{path} is a folder. Name one trace in it, a file that ends in .json or .json.gz.")
    try:
        file = path.open("rb")
    except FileNotFoundError as error:
        raise TraceError(f"there is no file {path}.") from error
    begin = file.peek(4)[:4]
    if not begin:
        file.close()
        raise TraceError(f"{path} is empty. The profiler writes the file when it stops: was it stopped?")
    raw: Any = gzip.GzipFile(fileobj=file) if begin[:2] == b"\x1f\x8b" else file
    return io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace")


def _what_it_is(path: Path, text: _Text) -> str:
    """One sentence about a file that begins as no trace does."""
    begin = text.window[:256]
    if begin.startswith("PK\x03\x04"):
        kind = "a zip archive: unpack it first"
    elif begin.startswith("SQLite format 3"):
        kind = "an SQLite database, as Nsight Systems writes: this command reads torch.profiler's JSON"
    elif any(character < " " and character not in "\t\r\n" for character in begin) or "\ufffd" in begin:
        kind = "a binary file"
    else:
        kind = "a text that is no JSON"
    named = " although its name ends in .gz" if path.suffix == ".gz" and kind.startswith("a ") else ""
    return (
        f"{path} is no trace{named}; it is {kind}."
        if ":" in kind
        else (f"{path} is no trace: it is {kind}{named}. A trace is JSON from torch.profiler, plain or gzip.")
    )
