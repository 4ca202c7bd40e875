"""A request as its caller sees it: the text as it comes, and why it ended."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from onelaunch.engine.core import FinishReason, Req
from onelaunch.models.streaming import StreamDecoder


@dataclass(frozen=True)
class Piece:
    """What one step added to one request."""

    index: int  # which prompt
    text: str  # new text; may be empty while a character or a stop string is incomplete
    token_id: int | None  # None where no token belongs to it (an error)
    finish_reason: FinishReason | None  # set on the last piece
    error: str | None = None


@dataclass(eq=False)
class Handle:
    """A submitted request: its pieces as they come, and the result once ``finish_reason`` is set."""

    index: int
    req: Req | None
    decoder: StreamDecoder | None
    pieces: deque[Piece] = field(default_factory=deque)
    text: str = ""
    finish_reason: FinishReason | None = None
    error: str | None = None

    @property
    def token_ids(self) -> list[int]:
        return self.req.output_ids if self.req is not None else []

    def result(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "text": self.text,
            "token_ids": self.token_ids,
            "finish_reason": self.finish_reason,
        }
        if self.error is not None:
            out["error"] = self.error
        return out

    def take(self, token: int, eos_token_ids: tuple[int, ...]) -> FinishReason | None:
        """Add the token that a step produced. Returns the reason if the request ends with it."""
        assert self.req is not None, "a refused request has no tokens"
        self.req.complete_one(token)
        text = ""
        reason: FinishReason | None = None
        if token in eos_token_ids and not self.req.sampling_params.ignore_eos:
            reason = "stop"
        elif self.decoder is not None:
            text = self.decoder.push(token)
            if self.decoder.stopped:
                reason = "stop"
        if reason is None and self.req.remain_len == 0:
            reason = "length"
        if reason is not None and self.decoder is not None:
            text += self.decoder.flush()  # nothing after a stop string
        self.text += text
        self.pieces.append(Piece(self.index, text, token, reason))
        return reason
