"""Decode steps from graphs: the same text as without, padded as promised, and silently wrong if a copy is forgotten."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from onelaunch import LLM, SamplingParams
from onelaunch.engine.capture import plan_graphs
from onelaunch.engine.core import Batch
from onelaunch.engine.graph import GraphCaptureBuffer

PROMPTS = ["My favourite animal is", "The sun rises in the", "A triangle has"]
SIX = SamplingParams(max_tokens=6)
CPU = torch.device("cpu")


@pytest.fixture(scope="module", params=[("torch", "rerun"), ("gather", "rerun"), ("gather", "tape")], ids="-".join)
def graphed(request: pytest.FixtureRequest) -> Iterator[LLM]:
    with LLM(
        "smollm2-135m",
        device="cpu",
        attention_backend=request.param[0],
        cuda_graph_max_bs=4,
        graph=request.param[1],
        max_running_req=8,
        max_seq_len_override=256,
    ) as llm:
        yield llm


def test_three_requests_run_as_four_and_write_the_same_text(graphed: LLM, smollm2: LLM) -> None:
    runner = graphed.engine.runner
    assert runner.graph_bs_list == [1, 2, 4]
    assert list(runner.graph_map) == [4, 2, 1]  # recorded largest first
    before = runner.stats.steps.copy()
    assert graphed.generate(PROMPTS, SIX) == smollm2.generate(PROMPTS, SIX)
    assert runner.stats.steps - before == {(3, 4): 5}


def test_without_positions_the_text_is_wrong_from_the_second_token_on_and_nothing_is_raised(
    graphed: LLM, smollm2: LLM
) -> None:
    buffer = graphed.engine.runner.buffer
    expected = [result["token_ids"] for result in smollm2.generate(PROMPTS, SIX)]
    graphed.generate(PROMPTS, SIX)  # what its last step needed is what the forgetful one will find

    def forgetful(batch: Batch) -> None:
        buffer.input_ids[: batch.padded_size].copy_(batch.input_ids)
        buffer.out_loc[: batch.padded_size].copy_(batch.out_loc)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(buffer, "copy_from", forgetful)
        found = [result["token_ids"] for result in graphed.generate(PROMPTS, SIX)]
    for right, wrong in zip(expected, found, strict=True):
        assert wrong[0] == right[0]
        assert wrong[1] != right[1]
    assert [result["token_ids"] for result in graphed.generate(PROMPTS, SIX)] == expected


def test_above_the_largest_size_steps_run_eagerly_and_say_so_once() -> None:
    prompts = [[1, 2], [3], [4, 5, 6]]
    with LLM("random:llama", device="cpu", cuda_graph_bs=[2], max_running_req=4) as llm:
        with LLM("random:llama", device="cpu") as plain:
            expected = plain.generate(prompts, SIX)
        with pytest.warns(
            UserWarning, match="a decode batch of 3 runs eagerly: the largest recorded size is 2"
        ) as said:
            results = [llm.generate(prompts, SIX) for _ in range(2)]
        assert results == [expected, expected]
        assert len(said) == 1
        assert llm.engine.runner.stats.eager_fallbacks == 10
        assert llm.engine.runner.stats.replays == 0


request = st.tuples(st.lists(st.integers(0, 255), min_size=1, max_size=40), st.integers(1, 20), st.integers(0, 12))


@settings(max_examples=15, deadline=None)
@given(
    requests=st.lists(request, min_size=1, max_size=7),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    kind=st.sampled_from([("torch", "rerun"), ("gather", "rerun"), ("gather", "tape")]),
)
def test_random_traffic_writes_the_same_text_with_graphs_as_without(
    requests: list[tuple[list[int], int, int]], sizes: list[int], kind: Any
) -> None:
    with (
        LLM("random:qwen3", device="cpu", max_seq_len_override=64) as eager,
        LLM(
            "random:qwen3",
            device="cpu",
            attention_backend=kind[0],
            graph=kind[1],
            cuda_graph_bs=sizes,
            max_running_req=5,
            max_seq_len_override=64,
        ) as llm,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # batches above the largest size are part of this
        arrivals = sorted(range(len(requests)), key=lambda i: requests[i][2])
        handles = {}
        decode_sizes = []
        step = 0
        while arrivals or llm.scheduler.has_work:
            while arrivals and requests[arrivals[0]][2] <= step:
                prompt, max_tokens, _ = requests[arrivals[0]]
                handles[arrivals.pop(0)] = llm.submit(prompt, SamplingParams(max_tokens=max_tokens))
            batch = llm.step()
            if batch is not None and batch.is_decode:
                decode_sizes.append(batch.size)
            step += 1
        for index, (prompt, max_tokens, _) in enumerate(requests):
            assert handles[index].result() == eager.generate(prompt, SamplingParams(max_tokens=max_tokens))[0]
        stats = llm.engine.runner.stats
        fits = [size for size in decode_sizes if size <= max(sizes)]
        assert stats.replays == stats.steps.total() == len(fits)
        assert stats.eager_fallbacks == len(decode_sizes) - len(fits)
        assert stats.padded_rows == sum(min(s for s in sizes if s >= size) - size for size in fits)


def test_what_the_dummy_page_holds_changes_no_live_row() -> None:
    params = SamplingParams(max_tokens=6, ignore_eos=True)
    for value in (torch.nan, 1e30, -1e30):
        with LLM("random:llama", device="cpu", cuda_graph_bs=[4], max_running_req=4) as llm:
            expected = llm.generate([[1, 2], [3], [4, 5, 6]], params)
            cache = llm.engine.context.kv_cache
            cache.k_cache[:, cache.dummy_page] = value
            cache.v_cache[:, cache.dummy_page] = value
            assert llm.generate([[1, 2], [3], [4, 5, 6]], params) == expected
            # The dummies wrote their own first slot: their rows really ran.
            assert (cache.k_cache[:, cache.dummy_page, 0].abs() < 1e4).all()


def test_padded_rows_are_the_dummy_s_at_every_replay() -> None:
    """Not what an earlier, larger batch left there."""
    with LLM("random:llama", device="cpu", cuda_graph_bs=[4], max_running_req=4) as llm:
        runner = llm.engine.runner
        llm.generate([[1, 2], [3], [4, 5, 6], [7] * 30], SIX)
        llm.generate([[1, 2]], SIX)
        dummy_slot = llm.engine.dummy_req.pages[0] * 16
        assert runner.buffer.input_ids[1:].tolist() == runner.buffer.positions[1:].tolist() == [0, 0, 0]
        assert runner.buffer.out_loc[1:].tolist() == [dummy_slot] * 3
        fixed = llm.engine.context.attn_backend.fixed  # type: ignore[attr-defined]  # of the paged backends
        assert fixed.seq_lens[1:].tolist() == [1, 1, 1]
        assert (fixed.page_table[1:] == llm.engine.context.page_table.dummy_page).all()


def test_buffers_stay_where_they_are() -> None:
    with LLM("random:llama", device="cpu", cuda_graph_max_bs=4, max_running_req=4) as llm:
        buffer = llm.engine.runner.buffer
        where = [tensor.data_ptr() for tensor in vars(buffer).values()]
        llm.generate([[1, 2], [3], [4, 5, 6]], SIX)
        assert [tensor.data_ptr() for tensor in vars(buffer).values()] == where
        assert isinstance(buffer, GraphCaptureBuffer)


def test_the_memory_that_recording_took_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level("INFO", "onelaunch"),
        LLM("random:llama", device="cpu", cuda_graph_bs=[1, 2, 4], max_running_req=4) as llm,
    ):
        runner = llm.engine.runner
        assert runner.graph_bytes == runner.graph_map[1].pool().reserved_bytes >= 2 << 20
        assert f"{runner.graph_bytes / 2**20:.1f} MiB of memory" in caplog.text
        pools = {graph.pool() for graph in runner.graph_map.values()}
        assert len(pools) == 1


def test_shutdown_deletes_the_graphs() -> None:
    llm = LLM("random:llama", device="cpu", cuda_graph_max_bs=2, max_running_req=4)
    runner = llm.engine.runner
    graph = runner.graph_map[2]
    llm.shutdown()
    assert not runner.graph_map
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()


def plan(choice: Any = "auto", device: torch.device = CPU, **changes: Any) -> Any:
    arguments = {"attention_backend": "auto", "cuda_graph_bs": None, "cuda_graph_max_bs": None, "max_running_req": 64}
    return plan_graphs(choice, device, **{**arguments, **changes})


def test_graphs_are_off_unless_sizes_are_given() -> None:
    assert plan().mode == "off"
    assert plan(cuda_graph_max_bs=0).mode == "off"
    assert plan(cuda_graph_max_bs=4).mode == "tape"
    assert plan(cuda_graph_max_bs=4).attention_backend == "gather"
    assert plan("off", cuda_graph_max_bs=4).sizes == []
    assert plan(cuda_graph_bs=[8, 2, 2]).sizes == [2, 8]
    assert plan("rerun", max_running_req=6).sizes == [1, 2, 4, 6]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: plan("magic"), "graph='magic' is not known; there is auto, tape, rerun, off"),
        (
            lambda: plan(attention_backend="magic"),
            "attention_backend='magic' is not known; there is torch, gather, auto",
        ),
        (lambda: plan(cuda_graph_bs=[0]), r"at least 1; found \[0\]"),
        (lambda: plan(cuda_graph_bs=[True]), "at least 1"),
        (lambda: plan(cuda_graph_max_bs=-1), "found -1"),
        (lambda: plan(cuda_graph_max_bs=2.5), r"found 2\.5"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_the_reference_backend_cannot_be_taped_and_the_engine_says_why() -> None:
    with pytest.warns(UserWarning, match=r"no graphs.*'torch' cannot be captured: it reads every sequence length"):
        llm = LLM("random:llama", device="cpu", cuda_graph_max_bs=2, attention_backend="torch", max_running_req=2)
    with llm, LLM("random:llama", device="cpu") as plain:
        assert llm.generate("abc", SIX) == plain.generate("abc", SIX)
        assert llm.engine.runner.stats.eager_fallbacks == 5


def test_a_gpu_is_told_why_the_reference_backend_cannot_be_captured() -> None:
    gpu = torch.device("cuda")  # only planned with, so none is needed
    with pytest.warns(UserWarning, match=r"no graphs.*'torch' cannot be captured: it reads every sequence length"):
        assert plan(device=gpu, cuda_graph_max_bs=4, attention_backend="torch").mode == "off"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        settled = plan(device=gpu, cuda_graph_max_bs=4)
    assert (settled.mode, settled.attention_backend) == ("cuda", "gather")


@pytest.mark.gpu
def test_real_graphs_write_the_same_text() -> None:
    with LLM("smollm2-135m", device="cuda", dtype=torch.float32) as llm:
        expected = llm.generate(PROMPTS, SIX)
    with LLM("smollm2-135m", device="cuda", dtype=torch.float32, cuda_graph_max_bs=4, max_seq_len_override=256) as llm:
        assert llm.generate(PROMPTS, SIX) == expected
        assert llm.engine.runner.stats.steps == {(3, 4): 5}
