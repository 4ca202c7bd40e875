"""Decode steps of transformers' own models, captured as they are: bitwise what eager computes, or rightly refused."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers", "5.24", reason="static caches as transformers 5.24 has them")

from decode_step import run  # noqa: E402
from transformers_models import build  # noqa: E402

SITE = Path(transformers.__file__).parents[1]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "model_type",
    [
        "llama",
        "qwen3",
        "gemma3_text",  # sliding windows
        "gpt_neox",
        "bloom",  # alibi
        "phi3",
        "olmo2",
        "bart",  # a decoder without its encoder
        "mixtral",  # experts
        "deepseek_v3",  # latent attention, experts in groups
        "qwen3_next",  # linear attention and experts
        "mamba",
        "jamba",
    ],
)
def test_eight_replays_of_a_decode_step_equal_eager(model_type: str) -> None:
    row = run(build(model_type), "prepared")
    assert row["outcome"] == "bitwise", row
    assert row["agrees"] < 1e-5  # and the step is a right one: the same tokens at once, without a cache, say so too


@pytest.mark.parametrize(
    ("model_type", "rule", "code"),
    [
        ("trocr", "host-sync", "torch.arange("),
        ("jetmoe", "host-sync", ".tolist()"),
        ("falcon", "host-data", "[-2]"),
    ],
)
def test_a_step_that_a_gpu_would_refuse_is_refused_at_its_line_in_transformers(
    model_type: str, rule: str, code: str
) -> None:
    row = run(build(model_type), "prepared")
    assert (row["outcome"], row["rule"]) == ("refused", rule), row
    file, line = row["where"].rsplit(":", 1)
    assert file.startswith(f"transformers/models/{model_type}/")
    assert code in linecache.getline(str(SITE / file), int(line))


def test_a_mask_made_inside_the_graph_from_a_counter_in_python_stays_as_it_was() -> None:
    row = run(build("gemma3_text"), "alone")
    assert (row["outcome"], row["step"]) == ("different", 1), row
