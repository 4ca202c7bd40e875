"""Text while it is being written: token by token, never half a character, never a piece of a stop string.

Pieces that were handed out are final: put together they are what decoding all tokens at once gives. The work for one
token does not grow with the length of the text.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from typing import Protocol

from onelaunch.errors import RequestError


class TokenStream(Protocol):
    """Turns tokens into text one at a time; what is incomplete waits for the next ``push`` or for ``flush``."""

    def push(self, token_id: int) -> str: ...

    def flush(self) -> str: ...


class Streamable(Protocol):
    """A tokenizer that can decode one token at a time."""

    def stream(self) -> TokenStream: ...


class StreamDecoder:
    """The text of one request as its tokens come, up to the first stop string.

    tokenizer: the model's. stop: strings that end the text; they are not part of it. Where several end at the same
    character, the longest counts. ``stopped`` turns True once one is complete, and from then on there is no more text.

    Raises RequestError for an empty stop string.
    """

    def __init__(self, tokenizer: Streamable, stop: str | Sequence[str] = ()) -> None:
        self._stop = (stop,) if isinstance(stop, str) else tuple(stop)
        if not all(isinstance(s, str) and s for s in self._stop):
            raise RequestError(f"stop strings must not be empty, or every text would end at once; found {stop!r}.")
        self._stream = tokenizer.stream()
        self._held = ""  # could still become a stop string
        self.stopped = False

    def push(self, token_id: int) -> str:
        """Add one token; returns the text that is new and final, often empty."""
        return "" if self.stopped else self._release(self._stream.push(token_id))

    def flush(self) -> str:
        """The rest, once no more tokens come: what was held back, and U+FFFD for a character that stayed incomplete."""
        if self.stopped:
            return ""
        text = self._release(self._stream.flush())
        if not self.stopped:
            text += self._held
            self._held = ""
        return text

    def _release(self, new: str) -> str:
        if not self._stop or not new:
            return new
        text = self._held + new
        found = [(start + len(s), start) for s in self._stop if (start := text.find(s)) >= 0]
        if found:
            self.stopped = True
            self._held = ""
            return text[: min(found)[1]]
        keep = max(_overlap(text, s) for s in self._stop)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


class ByteStream:
    """For vocabularies whose tokens are bytes: UTF-8 says itself where a character ends."""

    def __init__(self, bytes_of: Callable[[int], bytes]) -> None:
        self._bytes_of = bytes_of
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        return self._utf8.decode(self._bytes_of(token_id))

    def flush(self) -> str:
        text = self._utf8.decode(b"", final=True)
        self._utf8.reset()
        return text


class WindowStream:
    """For all other vocabularies: decode a short window, and hand out what it has beyond the tokens before.

    The window starts with the tokens of the last piece, because the text of a token can depend on there being one
    before it (the space in front of a word). A run of single-byte tokens is decoded as a whole when it ends, since one
    wrong byte changes how the whole run reads.
    """

    def __init__(
        self,
        decode: Callable[[Sequence[int]], str],
        is_skipped: Callable[[int], bool],
        is_byte: Callable[[int], bool],
    ) -> None:
        self._decode, self._is_skipped, self._is_byte = decode, is_skipped, is_byte
        self._window: list[int] = []
        self._out = 0  # how many tokens of the window are handed out already
        self._out_text = ""  # their text

    def push(self, token_id: int) -> str:
        if self._is_skipped(token_id):
            return ""
        self._window.append(token_id)
        return "" if self._is_byte(token_id) else self.flush()

    def flush(self) -> str:
        if self._out == len(self._window):
            return ""
        new = self._decode(self._window)[len(self._out_text) :]
        self._window = self._window[self._out :]
        self._out = len(self._window)
        self._out_text = self._decode(self._window)
        return new


def gpt2_bytes(token: str) -> bytes:
    """The bytes of a byte-level token, which is written with one visible character for each byte (GPT-2's table)."""
    try:
        return bytes(_BYTE_OF[character] for character in token)
    except KeyError:  # a token that was added as it is
        return token.encode()


def _gpt2_table() -> dict[str, int]:
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return {**{chr(byte): byte for byte in visible}, **{chr(256 + n): byte for n, byte in enumerate(hidden)}}


_BYTE_OF = _gpt2_table()


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of ``text`` with which ``stop`` begins, short of all of ``stop``."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
