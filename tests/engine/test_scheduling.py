"""Pages and rows under random traffic: every page comes back, none serves two requests, and nobody's text changes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelaunch import LLM, SamplingParams
from onelaunch.engine.core import Batch
from onelaunch.engine.engine import Engine
from onelaunch.engine.kvcache import PageAllocator, pages_for
from onelaunch.engine.llm import PAGE_SIZE

request = st.tuples(
    st.lists(st.integers(0, 255), min_size=1, max_size=60),  # prompt
    st.integers(1, 40),  # max_tokens
    st.integers(0, 25),  # step at which it arrives
    st.booleans(),  # whether it is sampled
)


def params_of(max_tokens: int, sampled: bool) -> SamplingParams:
    temperature = 1.0 if sampled else 0.0
    return SamplingParams(max_tokens=max_tokens, temperature=temperature, seed=max_tokens, top_k=20, top_p=0.9)


def assert_pages_belong_to_one(llm: LLM, batch: Batch) -> None:
    held = [page for req in llm.scheduler.running for page in req.pages]
    assert len(held) == len(set(held))
    assert llm.engine.context.kv_cache.dummy_page not in held
    assert len(held) + llm.engine.allocator.num_free == llm.num_pages
    rows = [req.table_idx for req in llm.scheduler.running]
    assert len(rows) == len(set(rows))
    table = llm.engine.context.page_table
    assert table.dummy_row not in rows
    for req in llm.scheduler.running:
        assert table.table[req.table_idx, : len(req.pages)].tolist() == req.pages
    slots = batch.out_loc.tolist()
    assert len(slots) == len(set(slots))


@settings(max_examples=30, deadline=None)
@given(
    requests=st.lists(request, min_size=1, max_size=8),
    spare_pages=st.integers(0, 6),
    max_running_req=st.integers(1, 5),
)
def test_random_traffic_leaves_no_trace(
    requests: list[tuple[list[int], int, int, bool]], spare_pages: int, max_running_req: int
) -> None:
    largest = max(pages_for(len(prompt) + max_tokens - 1, PAGE_SIZE) for prompt, max_tokens, _, _ in requests)
    with (
        LLM(
            "random:llama", device="cpu", num_page_override=largest + spare_pages, max_running_req=max_running_req
        ) as llm,
        LLM("random:llama", device="cpu") as alone,
    ):
        arrivals = sorted(range(len(requests)), key=lambda i: requests[i][2])
        handles = {}
        step = 0
        while arrivals or llm.scheduler.has_work:
            while arrivals and requests[arrivals[0]][2] <= step:
                prompt, max_tokens, _, sampled = requests[arrivals[0]]
                handles[arrivals.pop(0)] = llm.submit(prompt, params_of(max_tokens, sampled))
            batch = llm.step()
            if batch is not None:
                assert batch.size <= max_running_req
                assert_pages_belong_to_one(llm, batch)
            step += 1
        assert llm.engine.allocator.num_free == llm.engine.allocator.num_available == llm.num_pages
        assert llm.engine.context.page_table.num_free_rows == max_running_req
        assert (llm.engine.context.page_table.table == llm.engine.context.kv_cache.dummy_page).all()
        for index, (prompt, max_tokens, _, sampled) in enumerate(requests):
            expected = alone.generate(prompt, params_of(max_tokens, sampled))[0]
            assert handles[index].result() == expected


def test_requests_wait_in_order_when_pages_run_out() -> None:
    with LLM("random:llama", device="cpu", num_page_override=4) as llm:
        big = [llm.submit([1] * 30, SamplingParams(max_tokens=3, ignore_eos=True)) for _ in range(3)]  # 2 pages each
        small = llm.submit([1], SamplingParams(max_tokens=2, ignore_eos=True))
        first = llm.step()
        assert first is not None
        assert [req.uid for req in first.reqs] == [0, 1]
        while big[2].req is not None and big[2].req.table_idx < 0:
            assert small.finish_reason is None  # it would fit, and still does not overtake
            llm.step()
        while llm.scheduler.has_work:
            llm.step()
        assert [handle.finish_reason for handle in [*big, small]] == ["length"] * 4


def test_a_late_request_joins_the_next_decode_step() -> None:
    with LLM("random:llama", device="cpu") as llm:
        params = SamplingParams(max_tokens=6, ignore_eos=True)
        llm.submit([1, 2, 3], params)
        phases = []
        for step in range(20):
            if step == 2:
                llm.submit([4, 5], SamplingParams(max_tokens=2, ignore_eos=True))
            batch = llm.step()
            if batch is None:
                break
            phases.append((batch.phase, [req.uid for req in batch.reqs]))
        assert phases == [
            ("prefill", [0]),
            ("decode", [0]),
            ("prefill", [1]),
            ("decode", [0, 1]),
            ("decode", [0]),
            ("decode", [0]),
            ("decode", [0]),
        ]


def test_a_long_prompt_is_prefilled_alone() -> None:
    with LLM("random:llama", device="cpu") as llm:
        llm.scheduler.max_prefill_tokens = 10
        for length in (4, 4, 4, 30, 1):
            llm.submit([7] * length, SamplingParams(max_tokens=1))
        sizes = []
        while (batch := llm.step()) is not None:
            sizes.append([req.prompt_len for req in batch.reqs])
        assert sizes == [[4, 4], [4], [30], [1]]


def test_a_step_that_fails_ends_its_requests_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with LLM("random:llama", device="cpu") as llm:
        expected = llm.generate([5, 6, 7])
        handle = llm.submit([1, 2, 3])
        with monkeypatch.context() as patch:
            patch.setattr(Engine, "forward", lambda self, batch: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                llm.step()
        assert handle.finish_reason == "abort"
        assert llm.engine.allocator.num_available == llm.num_pages
        assert llm.generate([5, 6, 7]) == expected


def test_the_allocator_keeps_its_promises() -> None:
    allocator = PageAllocator(3)
    assert allocator.reserve(2)
    assert not allocator.reserve(2)
    page = allocator.allocate()
    assert (allocator.num_free, allocator.num_available) == (2, 1)
    allocator.free([page], reserved=1)
    assert (allocator.num_free, allocator.num_available) == (3, 3)
    with pytest.raises(RuntimeError, match="twice"):
        allocator.free([page])
    with pytest.raises(RuntimeError, match="reserved"):
        allocator.allocate()
