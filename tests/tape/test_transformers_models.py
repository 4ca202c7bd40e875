"""Decode steps of transformers' own models, captured as they are: bitwise what eager computes, or rightly refused."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers", "5.24", reason="static caches as transformers 5.24 has them")

from decode_step import run  # noqa: E402
from onelaunch.tape import RULES  # noqa: E402
from onelaunch.viz import measured  # noqa: E402
from transformers_models import build  # noqa: E402
from transformers_page import PAGE, page  # noqa: E402

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
        ("jetmoe", "host-copy", ".tolist()"),
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
    (frozen,) = row["frozen"]
    assert "transformers/masking_utils.py" in frozen


def test_a_step_with_a_full_window_is_refused_where_the_cache_makes_an_index_from_host_data() -> None:
    row = run(build("gemma3_text", window=4), "prepared")
    assert (row["outcome"], row["rule"]) == ("refused", "host-data"), row
    assert row["where"].startswith("transformers/cache_utils.py")


def test_a_state_that_is_bound_to_new_memory_is_named_with_the_line_that_does_it() -> None:
    row = run(build("recurrent_gemma"), "prepared")
    assert row["outcome"] == "different"
    assert any("conv1d_state (transformers/models/recurrent_gemma/" in text for text in row["moved"])


def test_the_page_is_what_was_measured() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(measured("transformers_models"))


def test_at_least_a_hundred_architectures_replay_and_all_others_say_why() -> None:
    rows = measured("transformers_models")["rows"]
    assert sum(row["outcome"] == "bitwise" for row in rows.values()) >= 100
    for name, row in rows.items():
        if row["outcome"] == "refused":
            assert row["rule"] in RULES, name
            assert row["where"].startswith("transformers/"), name
        elif row["outcome"] == "different":
            assert row["frozen"] or row.get("moved"), name
        else:
            assert row["outcome"] == "bitwise" or row["reason"], name
