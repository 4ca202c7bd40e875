"""The real engine for exercises that plug a learner's piece into it: SmolLM2, loaded once for all checks.

This module alone of ``grading`` stays in memory from one check to the next.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from unittest import mock

import torch

from onelaunch import LLM, SamplingParams
from onelaunch.models.loader import LoadedModel, load_model

NAME = "smollm2-135m"
PROMPTS = ("My favourite animal is", "The sun rises in the", "A triangle has")
# What transformers writes for them, greedily; a test holds it to that.
EXPECTED = (" a cat. What's your", " sky, casting a golden glow", " a slope of 1.")
PARAMS = SamplingParams(max_tokens=6, ignore_eos=True)
SEQ_LEN = 64


@cache
def _loaded() -> LoadedModel:
    return load_model(NAME, device=torch.device("cpu"), dtype=torch.float32, max_seq_len=SEQ_LEN)


def llm(**options: Any) -> LLM:
    """An ``LLM`` of SmolLM2 on the CPU for up to 4 requests; the weights are loaded once. options: of ``LLM``."""

    def load(*args: Any, **kwargs: Any) -> LoadedModel:
        return _loaded()

    with mock.patch("onelaunch.engine.llm.load_model", load):
        return LLM(NAME, device="cpu", **({"max_running_req": 4, "max_seq_len_override": SEQ_LEN} | options))


def write(engine: LLM) -> tuple[str, ...]:
    """What ``engine`` writes for ``PROMPTS``: three requests in one batch. ``EXPECTED`` is what is right."""
    return tuple(result["text"] for result in engine.generate(list(PROMPTS), PARAMS))
