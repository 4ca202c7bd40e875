"""``LLM(sanitize=True)``: silent about the engine as it is, and by name about each input that goes wrong in it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onelaunch import LLM, SamplingParams
from onelaunch.engine.core import Batch
from onelaunch.sanitizer import FindingsError, Report

INPUTS = ("input_ids", "positions", "out_loc")
METADATA = ("page_table", "seq_lens")
FIVE = SamplingParams(max_tokens=5, ignore_eos=True)
# Of four requests two end early, so that the last steps have padded rows which held a live request before.
PROMPTS = [[5, 6, 7], [9], [11, 12] * 10, [30] * 18]
LENGTHS = [SamplingParams(max_tokens=n, ignore_eos=True) for n in (9, 8, 4, 3)]


@pytest.fixture
def llm() -> Iterator[LLM]:
    with LLM("random:llama", device="cpu", cuda_graph_bs=[4], max_running_req=4, sanitize=True) as made:
        yield made


def fixed(llm: LLM, field: str) -> Any:
    """What owns the fixed tensor of a field: the runner's buffer, or the backend's metadata."""
    return llm.engine.runner.buffer if field in INPUTS else llm.engine.context.attn_backend.fixed  # type: ignore[attr-defined]


def fresh(batch: Batch, field: str) -> torch.Tensor:
    return getattr(batch if field in INPUTS else batch.attn_metadata, field)  # type: ignore[no-any-return]


def refill(llm: LLM, monkeypatch: pytest.MonkeyPatch, copy: Callable[[str, Batch], None]) -> None:
    """Let ``copy`` bring a field into its fixed tensor, in place of the engine's own code."""
    runner = llm.engine.runner
    for owner, method, fields in (
        (runner.buffer, "copy_from", INPUTS),
        (runner.context.attn_backend, "prepare_for_replay", METADATA),
    ):
        monkeypatch.setattr(owner, method, lambda batch, fields=fields: [copy(field, batch) for field in fields])


def broken(llm: LLM) -> Report:
    with pytest.raises(FindingsError) as caught:
        llm.generate(PROMPTS, LENGTHS)
    return caught.value.report


def omitted(llm: LLM, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def copy(name: str, batch: Batch) -> None:
        if name != field:
            getattr(fixed(llm, name), name)[: batch.padded_size].copy_(fresh(batch, name))

    refill(llm, monkeypatch, copy)


def stale_in_padded_rows(llm: LLM, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def copy(name: str, batch: Batch) -> None:
        rows = batch.size if name == field else batch.padded_size
        getattr(fixed(llm, name), name)[:rows].copy_(fresh(batch, name)[:rows])

    refill(llm, monkeypatch, copy)


def rebound(llm: LLM, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = fixed(llm, field)
    monkeypatch.setattr(owner, field, getattr(owner, field).clone())


def resized(llm: LLM, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = fixed(llm, field)
    old = getattr(owner, field)
    new = old.new_zeros((2 * old.shape[0], *old.shape[1:]))
    new[: old.shape[0]] = old
    monkeypatch.setattr(owner, field, new)


@pytest.mark.parametrize("field", [*INPUTS, *METADATA])
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (omitted, "stale-input"),
        (stale_in_padded_rows, "stale-input"),
        (rebound, "moved-address"),
        (resized, "moved-address"),
    ],
)
def test_each_input_is_named_whatever_befalls_it(
    llm: LLM, fault: Any, kind: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(llm, field, monkeypatch)
    report = broken(llm)
    assert [(f.kind, f.tensor) for f in report] == [(kind, field)], str(report)
    if fault is stale_in_padded_rows:
        assert any(rows in report.findings[0].why for rows in ("(row 3)", "(rows 2, 3)"))


def test_weights_loaded_into_new_tensors_are_named(llm: LLM) -> None:
    norm = llm.engine.model.layers[1].input_layernorm  # type: ignore[union-attr, index]
    norm.weight = torch.nn.Parameter(norm.weight.detach() * 2)
    report = broken(llm)
    assert [(f.kind, f.tensor) for f in report] == [("moved-address", "layers.1.input_layernorm.weight")], str(report)


def test_two_forgotten_inputs_are_both_named(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    def copy(name: str, batch: Batch) -> None:
        if name not in ("positions", "seq_lens"):
            getattr(fixed(llm, name), name)[: batch.padded_size].copy_(fresh(batch, name))

    refill(llm, monkeypatch, copy)
    assert {(f.kind, f.tensor) for f in broken(llm)} == {("stale-input", "positions"), ("stale-input", "seq_lens")}


def test_the_engine_goes_on_after_a_finding(llm: LLM) -> None:
    expected = llm.generate(PROMPTS, FIVE)
    with pytest.MonkeyPatch.context() as patch:
        omitted(llm, "positions", patch)
        with pytest.raises(FindingsError, match=r"decode step \d+ \(4 requests as 4\) would be replayed wrongly"):
            llm.generate(PROMPTS, FIVE)
    assert llm.generate(PROMPTS, FIVE) == expected


def leaks(llm: LLM, change: Callable[[Any, torch.Tensor], torch.Tensor], monkeypatch: pytest.MonkeyPatch) -> Report:
    """The findings where ``change`` is made to the result of attention in each decode step."""
    backend = llm.engine.context.attn_backend
    forward = backend.forward

    def changed(q: Any, k: Any, v: Any, layer_id: int, batch: Batch) -> torch.Tensor:
        out = forward(q, k, v, layer_id, batch)
        return change(batch, out) if batch.is_decode else out

    monkeypatch.setattr(backend, "forward", changed)
    llm.engine.runner.graph_map[4] = llm.engine.runner.capture(4)
    return broken(llm)


def test_a_scale_over_all_rows_is_named_by_what_the_dummies_hold(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    report = leaks(llm, lambda batch, out: out / out.abs().amax(), monkeypatch)
    (finding,) = report.findings
    assert (finding.kind, finding.tensor, finding.where.function) == ("padding-leak", "input_ids", "<lambda>")
    assert "what the padding of out_loc, page_table, seq_lens holds gets there too" in finding.why


def test_a_length_taken_over_all_rows_is_named(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    report = leaks(llm, lambda batch, out: out / batch.attn_metadata.seq_lens.amax(), monkeypatch)
    assert [(f.kind, f.tensor) for f in report] == [("padding-leak", "seq_lens")], str(report)


def test_a_leak_that_takes_two_places_at_once_is_named_by_the_content(
    llm: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    # NaN reaches the dummies only where they read more of their page than they write, and live rows only as 0 * NaN.
    report = leaks(llm, lambda batch, out: out + 0 * out.amax(0), monkeypatch)
    (finding,) = report.findings
    assert finding.tensor in ("k_cache", "v_cache")
    assert "NaN in the dummy's page" in finding.why


def test_a_masked_product_with_what_others_left_in_the_cache_is_named(
    llm: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = llm.engine.context.attn_backend
    locate = backend._locate  # type: ignore[attr-defined]

    def without_where(metadata: Any) -> None:
        locate(metadata)
        pages = metadata.page_table.long()[:, :, None] * backend._page_size  # type: ignore[attr-defined]
        metadata.slots = (pages + backend._offset).flatten()  # type: ignore[attr-defined]

    monkeypatch.setattr(backend, "_locate", without_where)
    llm.engine.runner.graph_map[4] = llm.engine.runner.capture(4)
    (finding,) = broken(llm).findings
    assert (finding.kind, finding.tensor) == ("padding-leak", "k_cache")
    assert "NaN behind a request's last token" in finding.why


def test_padding_is_left_as_it_was(llm: LLM) -> None:
    llm.generate(PROMPTS, LENGTHS)
    cache, fixed = llm.engine.context.kv_cache, llm.engine.context.attn_backend.fixed  # type: ignore[attr-defined]
    assert cache.k_cache.isfinite().all()
    assert cache.v_cache.isfinite().all()
    assert fixed.seq_lens[-1] == 1
    assert (fixed.page_table[-1] == cache.dummy_page).all()


request = st.tuples(st.lists(st.integers(0, 255), min_size=1, max_size=20), st.integers(1, 6))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    requests=st.lists(request, min_size=1, max_size=6),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    model=st.sampled_from(["random:llama", "random:qwen3"]),
)
def test_the_engine_as_it_is_gives_no_alarm_and_the_same_text(requests: Any, sizes: list[int], model: str) -> None:
    prompts = [prompt for prompt, _ in requests]
    params = [SamplingParams(max_tokens=n, ignore_eos=True) for _, n in requests]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # batches above the largest size are part of this
        with LLM(model, device="cpu", max_seq_len_override=64) as plain:
            expected = plain.generate(prompts, params)
        with LLM(
            model, device="cpu", cuda_graph_bs=sizes, max_running_req=5, max_seq_len_override=64, sanitize=True
        ) as llm:
            assert llm.generate(prompts, params) == expected
            checker = llm.engine.runner.checker
            assert checker is not None
            assert checker.steps == llm.engine.runner.stats.replays


@pytest.mark.parametrize(
    ("settings_", "said"),
    [
        ({}, "here graph is 'off'"),
        ({"cuda_graph_bs": [2], "graph": "rerun"}, "here graph is 'rerun'"),
        ({"cuda_graph_bs": [2], "attention_backend": "torch"}, "'torch' cannot be captured"),
    ],
)
def test_without_a_tape_there_is_nothing_to_check_and_that_is_said(settings_: Any, said: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=f"sanitize=True checks .*{said}"):
            LLM("random:llama", device="cpu", sanitize=True, **settings_)
