"""Small batches and buffers for exercises about the engine: what it has in a decode step, with numbers one can read."""

from __future__ import annotations

import random
from itertools import count

import torch
from torch import Tensor

from onelaunch.engine.core import Batch, Req, SamplingParams
from onelaunch.engine.graph import GraphCaptureBuffer

INPUTS = ("input_ids", "positions", "out_loc")
DUMMY_SLOT = 96
_uids = count(1)


def request(tokens: int = 5) -> Req:
    """A request that holds so many tokens, all but the last of them in the cache."""
    req = Req(next(_uids), list(range(1, tokens + 1)), tokens + 8, SamplingParams(max_tokens=8), table_idx=0, pages=[0])
    req.cached_len = tokens - 1
    return req


def dummy_request() -> Req:
    """A dummy, as the engine has one: a single token, at position 0."""
    return Req(-1, [0], 2, SamplingParams(max_tokens=1), table_idx=4, pages=[DUMMY_SLOT // 16])


def decode_batch(rng: random.Random, size: int, padded_size: int) -> Batch:
    """A prepared decode step of ``size`` requests that nobody has seen before, padded with dummies.

    Its inputs are ``[padded_size]`` int64. The dummies have token 0, position 0, and the slot ``DUMMY_SLOT``.
    """
    lengths = [rng.randint(2, 40) for _ in range(size)]
    batch = Batch([request(length) for length in lengths], "decode")
    dummies = padded_size - size
    batch.padded_reqs = batch.reqs + [dummy_request()] * dummies
    batch.input_ids = torch.tensor([*(rng.randint(100, 999) for _ in lengths), *[0] * dummies])
    batch.positions = torch.tensor([*(length - 1 for length in lengths), *[0] * dummies])
    batch.out_loc = torch.tensor([*rng.sample(range(DUMMY_SLOT), size), *[DUMMY_SLOT] * dummies])
    return batch


def used_buffer(rng: random.Random, rows: int = 4, vocab_size: int = 5) -> GraphCaptureBuffer:
    """Fixed buffers for ``rows`` requests, in which an earlier batch has left its values in every row."""
    buffer = GraphCaptureBuffer.init(rows, vocab_size, torch.device("cpu"), DUMMY_SLOT)
    for name in INPUTS:
        getattr(buffer, name).copy_(torch.tensor([rng.randint(1000, 1999) for _ in range(rows)]))
    return buffer


def is_view(got: object, whole: Tensor) -> bool:
    """Whether ``got`` is the first rows of ``whole``: the same memory, and no copy of it."""
    return (
        isinstance(got, Tensor)
        and got.dtype == whole.dtype
        and got.data_ptr() == whole.data_ptr()
        and (len(got) < 2 or got.stride() == whole.stride())
    )
