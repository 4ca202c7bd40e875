"""Which sizes are recorded, which of them a batch is run as, and which list wastes least."""

from __future__ import annotations

import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelaunch import padding
from onelaunch.padding import (
    CaptureList,
    best_sizes,
    capture_sizes,
    default_ceiling,
    memory_bytes,
    mini_sglang,
    nano_vllm,
    padded_size,
    sglang,
    tensorrt_llm,
    vllm,
    waste,
)


@pytest.mark.parametrize(
    ("ceiling", "sizes"),
    [
        (0, []),
        (1, [1]),
        (2, [1, 2]),
        (3, [1, 2, 3]),
        (4, [1, 2, 4]),
        (8, [1, 2, 4, 8]),
        (20, [1, 2, 4, 8, 16, 20]),
        (32, [1, 2, 4, 8, 16, 24, 32]),
    ],
)
def test_one_two_four_then_every_eighth_and_the_ceiling(ceiling: int, sizes: list[int]) -> None:
    assert capture_sizes(ceiling) == sizes


def test_the_usual_ceilings() -> None:
    assert default_ceiling(141 << 30) == 256
    assert default_ceiling(80 << 30) == 160
    assert capture_sizes(160)[-2:] == [152, 160]


@pytest.mark.parametrize(("size", "padded"), [(1, 1), (3, 4), (5, 8), (17, 20), (20, 20), (21, None)])
def test_a_batch_is_run_as_the_smallest_size_that_holds_it(size: int, padded: int | None) -> None:
    assert padded_size(size, capture_sizes(20)) == padded


@pytest.mark.parametrize(
    ("made", "outcomes"),  # of batches of 3, 17, 20 and 21, where 20 is the most that was asked for
    [
        (mini_sglang(20), [4, "eager", "eager", "eager"]),
        (nano_vllm(20), [4, "raises", "raises", "raises"]),
        (sglang(20), [4, 20, 20, "eager"]),
        (vllm(20), [4, 24, 24, 24]),
        (tensorrt_llm(20), [3, 17, 20, "eager"]),
        (tensorrt_llm(20, padding=True), [4, 20, 20, "eager"]),
    ],
    ids=lambda value: value.engine if isinstance(value, CaptureList) else "",
)
def test_what_each_engine_does_at_its_edges(made: CaptureList, outcomes: list[int | str]) -> None:
    assert [made.run_as(size) for size in (3, 17, 20, 21)] == outcomes


def test_lists_as_the_engines_have_them() -> None:
    assert mini_sglang(3).sizes == (1, 2, 4)
    assert mini_sglang(0).sizes == ()
    assert nano_vllm(1000).sizes[-1] == 512
    assert nano_vllm(1000).run_as(513) == nano_vllm(20).run_as(513) == "eager"
    assert len(vllm(256).sizes) == 51
    assert vllm(256).sizes[-2:] == (496, 512)
    assert sglang(512).sizes[-2:] == (496, 512)
    assert sglang(600).sizes[-3:] == (544, 576, 600)
    assert tensorrt_llm(128).run_as(33) == "eager"
    assert tensorrt_llm(128, padding=True).run_as(33) == 40
    for made in (mini_sglang(), nano_vllm(), sglang(), vllm(), tensorrt_llm(), tensorrt_llm(padding=True)):
        assert list(made.sizes) == sorted(set(made.sizes))


def test_thirty_seven_run_as_forty_eight_waste_eleven_rows() -> None:
    found = waste({37: 2, 48: 1, 100: 5}, [32, 48, 64])
    assert (found.live_rows, found.padded_rows, found.eager_steps) == (122, 22, 5)
    assert waste({37: 2}, [32, 48]).share == pytest.approx(48 / 37 - 1)
    assert waste({}, [4]).share == 0
    assert waste({5: 1}, []).eager_steps == 1


histograms = st.dictionaries(st.integers(1, 30), st.integers(0, 50), min_size=1, max_size=9).filter(
    lambda counts: any(counts.values())
)


@settings(max_examples=200, deadline=None)
@given(counts=histograms, budget=st.integers(1, 10), extra=st.none() | st.integers(30, 34))
def test_no_list_of_that_length_wastes_less(counts: dict[int, int], budget: int, extra: int | None) -> None:
    found = best_sizes(counts, budget, ceiling=extra)
    top = extra if extra is not None else max(size for size, steps in counts.items() if steps)
    assert found == sorted(set(found))
    assert len(found) <= budget
    assert found[-1] == top
    others = [size for size in counts if size < top]
    fewest = min(
        waste(counts, sorted({*chosen, top})).padded_rows
        for length in range(min(budget, len(others) + 1))
        for chosen in combinations(others, length)
    )
    assert waste(counts, found).padded_rows == fewest
    assert waste(counts, found).eager_steps == 0


def test_sizes_that_do_not_occur_cannot_help() -> None:
    """The search looks at sizes that occur only: against every list of sizes up to the largest."""
    counts = {2: 5, 5: 1, 6: 4, 9: 2, 11: 1}
    for budget in (1, 2, 3):
        fewest = min(
            waste(counts, [*chosen, 11]).padded_rows
            for length in range(budget)
            for chosen in combinations(range(1, 11), length)
        )
        assert waste(counts, best_sizes(counts, budget)).padded_rows == fewest


def test_more_graphs_never_waste_more_and_enough_of_them_nothing() -> None:
    counts = {size: 1 + size * 7919 % 101 for size in range(1, 513)}
    padded = [waste(counts, best_sizes(counts, budget)).padded_rows for budget in (1, 2, 4, 8, 51, 512)]
    assert padded == sorted(padded, reverse=True)
    assert padded[-1] == 0
    assert padded[-2] <= waste(counts, vllm(256).sizes).padded_rows  # as many graphs as vLLM has


@pytest.mark.parametrize(
    ("counts", "budget", "ceiling", "says"),
    [
        ({}, 3, None, "budget"),
        ({4: 0}, 3, None, "budget"),
        ({4: 1}, 0, None, "budget=0"),
        ({0: 1}, 1, None, "1 row"),
        ({4: -1, 5: 1}, 1, None, "1 row"),
        ({9: 1}, 2, 8, "leaves out batches of up to 9"),
    ],
)
def test_nothing_to_choose_from_is_refused(counts: dict[int, int], budget: int, ceiling: int | None, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        best_sizes(counts, budget, ceiling)


def test_the_largest_size_sets_the_rows_and_each_graph_costs_its_own() -> None:
    assert memory_bytes([1, 2, 4], row_bytes=100, graph_bytes=7) == 421
    assert memory_bytes([], row_bytes=100, graph_bytes=7) == 0


def test_the_module_runs_with_nothing_but_python(tmp_path: Path) -> None:
    """As in a browser: no torch, no onelaunch."""
    shutil.copy(padding.__file__, tmp_path / "alone.py")
    code = "import sys; sys.path.insert(0, '.'); import alone; print(alone.best_sizes({1: 3, 5: 2, 8: 1}, 2))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "[1, 8]", done.stderr
