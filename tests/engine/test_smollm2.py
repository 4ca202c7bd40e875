"""The embedded model writes what Hugging Face's implementation writes, token for token."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

from onelaunch import LLM, SamplingParams
from onelaunch.grading import engines
from onelaunch.models import embedded

PROMPTS = [
    "The",
    "The capital of France is",
    "def fibonacci(n):\n    ",
    "Once upon a time, in a village by the sea, there lived a",
    "Water boils at 100 degrees Celsius because",
    "A CUDA Graph records a step once and replays it with one launch. " * 3 + "The price is",
    "1, 2, 3, 5, 8, 13,",
    "Dear Sir or Madam,\n\nI am writing to you about the bicycle that I bought in your shop on Monday. " * 6,
]
STEPS = 32


@pytest.fixture(scope="module")
def reference() -> tuple[Any, Any]:
    """transformers' tokenizer and model."""
    folder = embedded.fetch()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return tokenizer, transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


@pytest.fixture(scope="module")
def expected(smollm2: LLM) -> list[list[int]]:
    """What the engine writes for each prompt alone; ``test_alone`` says that it is what transformers writes."""
    return [smollm2.generate(prompt, SamplingParams(max_tokens=STEPS))[0]["token_ids"] for prompt in PROMPTS]


def test_what_exercises_have_to_write_is_what_transformers_writes(reference: tuple[Any, Any]) -> None:
    tokenizer, model = reference
    for prompt, text in zip(engines.PROMPTS, engines.EXPECTED, strict=True):
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        with torch.no_grad():
            out = model.generate(ids, max_new_tokens=engines.PARAMS.max_tokens, do_sample=False)
        assert tokenizer.decode(out[0, ids.shape[1] :]) == text


def test_alone(expected: list[list[int]], reference: tuple[Any, Any]) -> None:
    """After the prompt and each beginning of what was written, the next token is transformers' likeliest. So it writes
    the same, and one pass over the whole says so instead of a step for each token."""
    tokenizer, model = reference
    for prompt, written in zip(PROMPTS, expected, strict=True):
        ids = tokenizer(prompt).input_ids
        with torch.no_grad():
            logits = model(torch.tensor([ids + written])).logits[0]
        assert logits[len(ids) - 1 : -1].argmax(-1).tolist() == written
        assert len(written) == STEPS or written[-1] == model.generation_config.eos_token_id


def test_all_in_one_batch(smollm2: LLM, expected: list[list[int]]) -> None:
    results = smollm2.generate(PROMPTS, SamplingParams(max_tokens=STEPS))
    assert [result["token_ids"] for result in results] == expected


def test_joining_late_and_finishing_early(smollm2: LLM, expected: list[list[int]]) -> None:
    lengths = [STEPS if index % 2 else 3 + 3 * index for index in range(len(PROMPTS))]
    handles = []
    sizes = set()
    waiting = list(zip(PROMPTS, lengths, strict=True))
    step = 0
    while waiting or smollm2.scheduler.has_work:
        if waiting and step % 3 == 0:
            prompt, length = waiting.pop(0)
            handles.append(smollm2.submit(prompt, SamplingParams(max_tokens=length)))
        batch = smollm2.step()
        if batch is not None and batch.is_decode:
            sizes.add(batch.size)
        step += 1
    assert len(sizes) > 3  # the batch really did change under way
    for handle, want, length in zip(handles, expected, lengths, strict=True):
        assert handle.token_ids == want[:length]


def test_replayed_from_a_tape(expected: list[list[int]]) -> None:
    with LLM("smollm2-135m", device="cpu", cuda_graph_max_bs=8, max_running_req=8, max_seq_len_override=256) as llm:
        results = llm.generate(PROMPTS, SamplingParams(max_tokens=STEPS))
        assert [result["token_ids"] for result in results] == expected
        assert llm.engine.runner.mode == "tape"
        assert llm.engine.runner.stats.replays == STEPS - 1
