"""What travels through the engine: a request, the batch it is part of in one step, and the context a model sees.

The names are those of mini-sglang, so that you can open its source next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from onelaunch.errors import RequestError

if TYPE_CHECKING:
    from onelaunch.attention.base import AttentionBackend, AttentionMetadata
    from onelaunch.engine.kvcache import KVCachePool, PageTable

FinishReason = Literal["stop", "length", "error", "abort"]


@dataclass
class SamplingParams:
    """How the tokens of one request are chosen, and when it ends.

    temperature: 0 takes the most likely token (greedy); higher spreads the choice.
    top_k: choose among this many most likely tokens only; -1 for all.
    top_p: choose among the fewest most likely tokens that together hold this probability.
    seed: the same seed gives the same tokens, whoever shares the batch; None differs from call to call.
    max_tokens: new tokens at most.
    ignore_eos: go on after the end-of-text token.
    stop: strings that end the text; they are not part of it.
    """

    temperature: float = 0.0
    top_k: int = -1
    top_p: float = 1.0
    seed: int | None = None
    max_tokens: int = 128
    ignore_eos: bool = False
    stop: str | Sequence[str] = ()

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0.0 or self.top_k == 1

    @property
    def stop_strings(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)

    def validate(self) -> None:
        """Raise RequestError where a value means nothing. The engine asks when a request is submitted."""
        self._require(_is_number(self.temperature) and self.temperature >= 0, "temperature", "a number >= 0")
        self._require(_is_int(self.top_k) and (self.top_k == -1 or self.top_k >= 1), "top_k", "-1 (all) or an int >= 1")
        self._require(_is_number(self.top_p) and 0 < self.top_p <= 1, "top_p", "a number in (0, 1]")
        self._require(self.seed is None or (_is_int(self.seed) and self.seed >= 0), "seed", "None or an int >= 0")
        self._require(_is_int(self.max_tokens) and self.max_tokens >= 1, "max_tokens", "an int >= 1")
        stops = [self.stop] if isinstance(self.stop, str) else self.stop
        good = isinstance(stops, (list, tuple)) and all(isinstance(s, str) and s for s in stops)
        # An empty tuple is the default; an empty string would end every text at once.
        self._require(good or self.stop == (), "stop", "a non-empty string or a list of them")

    def _require(self, holds: bool, name: str, wanted: str) -> None:
        if not holds:
            raise RequestError(f"SamplingParams.{name} must be {wanted}; found {getattr(self, name)!r}.")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(eq=False)
class Req:
    """One request while the engine works on it.

    ``input_ids`` holds the prompt and grows by one token a step. Of these, the first ``cached_len`` have their keys
    and values in the KV cache; the rest are what the next step computes.
    """

    uid: int
    input_ids: list[int]
    max_device_len: int  # prompt and new tokens together, at most
    sampling_params: SamplingParams
    table_idx: int = -1  # row of the page table, -1 while the request waits
    cached_len: int = 0
    pages: list[int] = field(default_factory=list)
    generator: torch.Generator | None = None
    finish_reason: FinishReason | None = None
    prompt_len: int = field(init=False)

    def __post_init__(self) -> None:
        self.prompt_len = len(self.input_ids)

    @property
    def device_len(self) -> int:
        """Tokens that the cache holds after the next step."""
        return len(self.input_ids)

    @property
    def extend_len(self) -> int:
        """Tokens that the next step computes: the whole prompt in a prefill, one in a decode step."""
        return self.device_len - self.cached_len

    @property
    def remain_len(self) -> int:
        """New tokens that may still come."""
        return self.max_device_len - self.device_len

    @property
    def output_ids(self) -> list[int]:
        return self.input_ids[self.prompt_len :]

    def complete_one(self, next_token: int) -> None:
        """Take over the token that a step produced: all before it is cached now."""
        self.cached_len = self.device_len
        self.input_ids.append(next_token)


@dataclass(eq=False)
class Batch:
    """The requests of one step, and the step's inputs as tensors on the device, one entry per token.

    In a decode step every request brings one token, so ``[tokens]`` is ``[size]``; in a prefill the prompts lie one
    after the other.
    """

    reqs: list[Req]
    phase: Literal["prefill", "decode"]
    input_ids: Tensor = field(init=False)  # [tokens] int64
    positions: Tensor = field(init=False)  # [tokens] int64: place of the token in its own request
    out_loc: Tensor = field(init=False)  # [tokens] int64: slot of the KV cache that its key and value go to
    padded_reqs: list[Req] = field(init=False)  # reqs, and dummies up to a captured size
    attn_metadata: AttentionMetadata = field(init=False)

    def __post_init__(self) -> None:
        self.padded_reqs = self.reqs

    @property
    def is_prefill(self) -> bool:
        return self.phase == "prefill"

    @property
    def is_decode(self) -> bool:
        return self.phase == "decode"

    @property
    def size(self) -> int:
        return len(self.reqs)

    @property
    def padded_size(self) -> int:
        return len(self.padded_reqs)


@dataclass(eq=False)
class Context:
    """What a model can reach while it runs: the cache, the page table, the attention backend and the current batch."""

    kv_cache: KVCachePool
    page_table: PageTable
    attn_backend: AttentionBackend = field(init=False)
    _batch: Batch | None = None

    @property
    def batch(self) -> Batch:
        if self._batch is None:
            raise RuntimeError("no batch is being run: call the model inside `with context.forward_batch(batch):`")
        return self._batch

    @contextmanager
    def forward_batch(self, batch: Batch) -> Iterator[None]:
        """Make ``batch`` the current one for the length of a ``with``."""
        if self._batch is not None:
            raise RuntimeError("a batch is being run already: forward_batch does not nest")
        self._batch = batch
        try:
            yield
        finally:
            self._batch = None
