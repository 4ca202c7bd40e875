"""Shared by all tests: the real model, fetched once per machine and loaded once per run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from onelaunch import LLM


@pytest.fixture(scope="session")
def smollm2() -> Iterator[LLM]:
    with LLM("smollm2-135m", device="cpu") as llm:
        yield llm


@pytest.fixture(scope="session")
def tiny() -> Iterator[LLM]:
    with LLM("random:llama", device="cpu", num_page_override=256) as llm:
        yield llm
