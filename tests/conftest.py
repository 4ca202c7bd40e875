"""Shared by all tests: the real model, fetched once per machine and loaded once per run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from machine import Machine

from onelaunch import LLM, SamplingParams, emulator
from onelaunch.engine.core import Batch

LogitsOfSteps = Callable[[LLM, list[list[int]], SamplingParams], tuple[list[torch.Tensor], list[list[int]]]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        skip = pytest.mark.skip(reason="no GPU here: real graphs are recorded on one only")
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(skip)


@pytest.fixture(params=["emulator", pytest.param("gpu", marks=pytest.mark.gpu)])
def machine(request: pytest.FixtureRequest) -> Machine:
    """Both, one after the other."""
    return Machine(emulator, "cpu") if request.param == "emulator" else Machine(torch.cuda, "cuda")


@pytest.fixture(scope="session")
def smollm2() -> Iterator[LLM]:
    with LLM("smollm2-135m", device="cpu") as llm:
        yield llm


@pytest.fixture(scope="session")
def tiny() -> Iterator[LLM]:
    with LLM("random:llama", device="cpu", num_page_override=256) as llm:
        yield llm


@pytest.fixture(scope="session")
def logits_of_steps() -> LogitsOfSteps:
    """Generates and keeps the logits of every step, ``[requests, vocab]`` each, beside the token ids."""

    def run(llm: LLM, prompts: list[list[int]], params: SamplingParams) -> Any:
        kept: list[torch.Tensor] = []
        forward = llm.engine.forward

        def spy(batch: Batch) -> torch.Tensor:
            logits = forward(batch)
            kept.append(logits.clone())
            return logits

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(llm.engine, "forward", spy)
            results = llm.generate(prompts, params)
        return kept, [result["token_ids"] for result in results]

    return run
