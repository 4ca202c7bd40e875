"""The backend that can be captured computes what the reference computes, and masked positions reach nothing."""

from __future__ import annotations

from typing import Any

import torch

from onelaunch import LLM, SamplingParams
from onelaunch.engine.core import Batch

PROMPTS = [[7], list(range(40, 56)), list(range(60, 77)), list(range(100)), [1, 2, 3]]
LONG = SamplingParams(max_tokens=40, ignore_eos=True)


def test_logits_equal_the_reference_for_grouped_heads_and_any_lengths(logits_of_steps: Any) -> None:
    for model in ("random:llama", "random:qwen3"):
        steps = {}
        for backend in ("torch", "gather"):
            with LLM(model, device="cpu", attention_backend=backend, max_seq_len_override=192) as llm:
                steps[backend], _ = logits_of_steps(llm, PROMPTS, LONG)
        assert len(steps["torch"]) == len(steps["gather"]) == 40
        for expected, found in zip(steps["torch"], steps["gather"], strict=True):
            torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def test_smollm2_writes_the_same_text(smollm2: LLM) -> None:
    prompts = ["The capital of France is", "def fibonacci(n):\n    ", "Once upon a time, in a village by the sea,"]
    params = SamplingParams(max_tokens=16)
    expected = smollm2.generate(prompts, params)
    with LLM("smollm2-135m", device="cpu", attention_backend="gather", max_seq_len_override=128) as llm:
        assert llm.generate(prompts, params) == expected


def test_what_others_left_in_the_cache_reaches_nobody() -> None:
    """Every slot that no live token owns holds NaN: not one of them may be part of a result."""
    with LLM("random:llama", device="cpu", attention_backend="gather", max_seq_len_override=192) as llm:
        expected = llm.generate(PROMPTS, LONG)
        cache = llm.engine.context.kv_cache
        forward = llm.engine.forward

        def poisoned(batch: Batch) -> torch.Tensor:
            live = torch.zeros(cache.k_cache.shape[1:3], dtype=torch.bool)
            for req in llm.scheduler.running:
                for token in range(req.cached_len):
                    live[req.pages[token // cache.page_size], token % cache.page_size] = True
            cache.k_cache[:, ~live] = torch.nan
            cache.v_cache[:, ~live] = torch.nan
            return forward(batch)

        llm.engine.forward = poisoned  # type: ignore[method-assign]  # the way in between two steps
        assert llm.generate(PROMPTS, LONG) == expected
