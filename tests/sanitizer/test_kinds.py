"""Each kind of fault, made in a plausible way, gets its kind, its name and its line; and nothing else is found."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from onelaunch import cuda, emulator, sanitize
from onelaunch.sanitizer import Finding, Report

Pair = tuple[Callable[[int], Any], Callable[[], Any]]


def line_of(function: Callable[..., Any], text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(n for n, line in enumerate(lines) if text in line)


def only(report: Report, kind: str, tensor: str | None) -> Finding:
    assert [(f.kind, f.tensor) for f in report] == [(kind, tensor)], str(report)
    (finding,) = report
    assert finding.why
    assert finding.fix
    return finding


def test_a_buffer_that_nobody_refilled_is_stale() -> None:
    buffer = SimpleNamespace(ids=torch.zeros(3, dtype=torch.long), positions=torch.zeros(3, dtype=torch.long))
    batch = SimpleNamespace(ids=buffer.ids, positions=buffer.positions)
    tokens, places = torch.randn(9, 4), torch.randn(9, 4)

    def prepare(i: int) -> None:
        if i > 0:
            batch.ids, batch.positions = torch.full((3,), i), torch.full((3,), i + 1)
            buffer.ids.copy_(batch.ids)

    def step() -> torch.Tensor:
        hidden = tokens[batch.ids]
        return hidden + places[batch.positions]

    finding = only(sanitize(prepare, step, owners=(buffer, batch)), "stale-input", "positions")
    assert finding.where.line == line_of(
        test_a_buffer_that_nobody_refilled_is_stale, "return hidden + places[batch.positions]"
    )
    assert finding.where.function == "step"
    assert "first kernel that differs" in finding.why


def test_a_buffer_refilled_in_part_is_stale_in_the_other_rows() -> None:
    buffer = {"lengths": torch.zeros(4, dtype=torch.long)}
    batch = SimpleNamespace(seq=buffer["lengths"])

    def prepare(i: int) -> None:
        if i > 0:
            batch.seq = torch.full((4,), i)
            buffer["lengths"][:3].copy_(batch.seq[:3])

    finding = only(sanitize(prepare, lambda: batch.seq * 2, owners=(buffer, batch)), "stale-input", "lengths")
    assert "(row 3)" in finding.why


def test_host_code_in_the_step_that_writes_through_numpy_is_not_replayed() -> None:
    place = np.zeros(1, np.int64)
    state = SimpleNamespace(place=torch.from_numpy(place))

    def step() -> torch.Tensor:
        place[0] += 1
        return state.place * 2

    only(sanitize(lambda i: None, step, owners=state), "stale-input", "place")


class Rope(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x * self.weight)


def test_weights_that_were_reloaded_into_new_tensors_moved() -> None:
    model, x = Rope(), torch.ones(2, 4)
    old = model.inner.weight

    def prepare(i: int) -> None:
        if i == 2:
            model.inner.weight = nn.Parameter(old.detach() * 2)

    with torch.no_grad():
        report = sanitize(prepare, lambda: model(x), owners=(SimpleNamespace(model=model),))
    finding = only(report, "moved-address", "model.inner.weight")
    assert "round 2" in finding.why


@pytest.mark.parametrize("keep", [True, False])
def test_metadata_that_is_bound_anew_moved_whether_or_not_the_old_lives_on(keep: bool) -> None:
    meta, old = SimpleNamespace(seq_lens=torch.ones(3)), []

    def prepare(i: int) -> None:
        if keep:
            old.append(meta.seq_lens)
        meta.seq_lens = torch.full((3,), float(i))

    finding = only(sanitize(prepare, lambda: meta.seq_lens * 2, owners=meta), "moved-address", "seq_lens")
    assert ("nobody owns" in finding.why) is not keep


def test_metadata_that_grew_moved() -> None:
    meta = SimpleNamespace(table=torch.ones(2, 2))

    def prepare(i: int) -> None:
        meta.table = torch.ones(2, 2 + i)

    finding = only(sanitize(prepare, lambda: meta.table.sum(1), owners=meta), "moved-address", "table")
    assert "[2, 3]" in finding.why


def test_a_tensor_resized_in_place_moved() -> None:
    meta = SimpleNamespace(table=torch.ones(4))

    def prepare(i: int) -> None:
        if i == 1:
            meta.table.resize_(1 << 20).fill_(2)

    only(sanitize(prepare, lambda: meta.table[:4] * 2, owners=meta), "moved-address", "table")


def test_a_state_that_the_step_itself_binds_anew_moved() -> None:
    rnn, x = SimpleNamespace(h=torch.zeros(3)), torch.ones(3)

    def step() -> torch.Tensor:
        rnn.h = rnn.h * 0.5 + x
        return rnn.h

    only(sanitize(lambda i: None, step, owners=rnn), "moved-address", "h")


def test_the_source_of_a_copy_that_lives_for_one_request_is_freed() -> None:
    requests: dict[str, torch.Tensor] = {}
    cache = SimpleNamespace(scale=torch.ones(3))

    def prepare(i: int) -> None:
        requests.clear()
        requests[f"request {i}"] = torch.full((3,), float(i))

    def step() -> torch.Tensor:
        (factors,) = requests.values()
        cache.scale.copy_(factors)
        return cache.scale * 2

    only(sanitize(prepare, step, owners=cache), "freed-address", "requests.request 0")


def test_memory_that_was_given_back_is_freed() -> None:
    engine = SimpleNamespace(cache=torch.ones(5), awake=True)

    def prepare(i: int) -> None:
        if i == 1:
            del engine.cache

    def step() -> torch.Tensor:
        return engine.cache * 2 if hasattr(engine, "cache") else torch.ones(5) * 2

    report = sanitize(prepare, step, owners=engine)
    assert ("freed-address", "cache") in [(f.kind, f.tensor) for f in report], str(report)


def test_an_output_kept_from_one_round_and_read_after_the_next_is_overwritten() -> None:
    x, box, kept = torch.zeros(2), {}, []  # type: ignore[var-annotated]

    def prepare(i: int) -> None:
        if i > 0:
            kept.append(box["out"])
        if i == 3:
            torch.stack(kept[-2:]).sum()
        x.fill_(i)

    def step() -> torch.Tensor:
        box["out"] = x + 1
        return box["out"]

    finding = only(sanitize(prepare, step), "overwritten-output", "kept.1")
    assert finding.where.line == line_of(
        test_an_output_kept_from_one_round_and_read_after_the_next_is_overwritten, "torch.stack(kept"
    )


def test_the_previous_output_in_a_variable_is_overwritten_too() -> None:
    x, box, previous = torch.zeros(2), {}, None  # type: ignore[var-annotated]
    moved = []

    def prepare(i: int) -> None:
        nonlocal previous
        if previous is not None and i > 1:
            moved.append((box["out"] - previous).abs().max().item())
        previous = box.get("out")
        x.fill_(i)

    def step() -> torch.Tensor:
        box["out"] = x + 1
        return box["out"]

    only(sanitize(prepare, step), "overwritten-output", "previous")


def two_graphs(shared: bool) -> tuple[Any, Any, torch.Tensor, torch.Tensor]:
    """A graph whose intermediate lies where a later graph of the same pool puts its output."""
    x = torch.ones(8)
    first, second = emulator.CUDAGraph(), emulator.CUDAGraph()
    with emulator.graph(first):
        last = ((x * 2) + 1).sum()
    with emulator.graph(second, pool=first.pool() if shared else None):
        draft = x * 5
    return first, second, draft, last


@pytest.mark.parametrize("shared", [True, False])
def test_an_output_of_another_graph_that_a_third_destroys_is_overwritten(shared: bool) -> None:
    first, second, draft, last = two_graphs(shared)

    def prepare(i: int) -> None:
        second.replay()
        first.replay()

    state = SimpleNamespace(draft=draft)
    report = sanitize(prepare, lambda: state.draft + 1, owners=state)
    if shared:
        only(report, "overwritten-output", "draft")
    else:
        assert not report, str(report)
    del last


def test_a_number_of_the_host_is_frozen() -> None:
    config, x = SimpleNamespace(scale=1.0), torch.ones(3)

    def prepare(i: int) -> None:
        config.scale = 1.0 + i

    def step() -> torch.Tensor:
        return x * config.scale

    finding = only(sanitize(prepare, step, owners=config), "frozen-value", "scale")
    assert finding.where.line == line_of(test_a_number_of_the_host_is_frozen, "return x * config.scale")
    assert "other=1.0" in finding.why
    assert "2.0" in finding.why


def test_a_counter_that_the_step_advances_is_frozen() -> None:
    state = SimpleNamespace(position=0, cache=torch.zeros(9, 2))

    def step() -> torch.Tensor:
        state.cache[state.position] = 1.0
        state.position += 1
        return state.cache.sum()

    finding = only(sanitize(lambda i: None, step, owners=state), "frozen-value", "position")
    assert "of cache" in finding.why


def test_a_slice_that_the_host_cuts_is_frozen() -> None:
    state = SimpleNamespace(keys=torch.randn(16, 4), length=3)
    query = torch.randn(4)

    def prepare(i: int) -> None:
        state.length = 3 + i

    def step() -> torch.Tensor:
        return state.keys[: state.length] @ query

    finding = only(sanitize(prepare, step, owners=state), "frozen-value", "length")
    assert "of keys" in finding.why


def test_a_random_number_of_python_is_frozen() -> None:
    import random

    x = torch.ones(2)
    only(sanitize(lambda i: None, lambda: x * random.random()), "frozen-value", None)


def test_a_branch_of_the_host_is_frozen() -> None:
    state, x = SimpleNamespace(greedy=True), torch.randn(5)

    def prepare(i: int) -> None:
        state.greedy = i < 2

    def step() -> torch.Tensor:
        if state.greedy:
            return x.argmax() * 1.0
        return x.softmax(0).cumsum(0)[2]

    report = sanitize(prepare, step, owners=state)
    assert report.kinds == ["frozen-branch"], str(report)
    assert report.findings[0].tensor == "greedy"


def test_a_choice_between_two_results_is_frozen() -> None:
    state, x = SimpleNamespace(left=True), torch.randn(5)

    def prepare(i: int) -> None:
        state.left = i % 2 == 0

    def step() -> torch.Tensor:
        a, b = x * 2, x * 3
        return (a if state.left else b) + 1

    only(sanitize(prepare, step, owners=state), "frozen-branch", "left")


def padded(mask: bool) -> tuple[Any, ...]:
    x = torch.zeros(4, 3)
    live = torch.zeros(4, 1)

    def prepare(i: int) -> None:
        live[:2] = 1
        x[:2] = torch.randn(2, 3)

    def step() -> torch.Tensor:
        total = torch.where(live > 0, x, 0.0).sum(0) if mask else (x * live).sum(0)
        return x - total

    return prepare, step, lambda i: [x[2:]], {"x": x}


def test_padding_that_is_only_multiplied_by_zero_leaks() -> None:
    prepare, step, padding, owner = padded(mask=False)
    finding = only(sanitize(prepare, step, owners=owner, padding=padding), "padding-leak", "x")
    assert "NaN" in finding.why
    prepare, step, padding, owner = padded(mask=True)
    assert not sanitize(prepare, step, owners=owner, padding=padding)


def cached(slot: int) -> tuple[Any, ...]:
    keys, slots, cache = torch.zeros(3, 2), torch.zeros(3, dtype=torch.long), torch.zeros(6, 2)

    def prepare(i: int) -> None:
        keys[:2] = torch.randn(2, 2)
        slots[:2] = torch.tensor([3, 5])
        slots[2] = slot

    def step() -> torch.Tensor:
        cache[slots] = keys
        return cache[slots]

    return prepare, step, lambda i: [keys[2:], cache[0]], {"keys": keys, "slots": slots, "cache": cache}


def test_a_padded_row_that_writes_to_the_last_slot_leaks_and_one_with_a_slot_of_its_own_does_not() -> None:
    prepare, step, padding, owner = cached(slot=-1)
    finding = only(sanitize(prepare, step, owners=owner, padding=padding), "padding-leak", "keys")
    assert finding.where.function == "step"
    prepare, step, padding, owner = cached(slot=0)
    assert not sanitize(prepare, step, owners=owner, padding=padding)


def test_work_that_the_second_call_alone_does_is_recorded() -> None:
    state, x = SimpleNamespace(calls=0, table=torch.zeros(4)), torch.ones(4)

    def step() -> torch.Tensor:
        state.calls += 1
        if state.calls == 2:
            state.table.copy_(x * 3)
        return state.table + x

    finding = only(sanitize(lambda i: None, step, owners=state), "lazy-init-recorded", "table")
    assert finding.where.line == line_of(
        test_work_that_the_second_call_alone_does_is_recorded, "state.table.copy_(x * 3)"
    )


def test_a_workspace_that_the_capture_makes_lives_in_the_pool() -> None:
    state, x = SimpleNamespace(warm=False, space=None), torch.ones(4)

    def step() -> torch.Tensor:
        if state.warm and state.space is None:
            state.space = torch.zeros(4)
        state.warm = True
        return x * 2 if state.space is None else torch.mul(x, 2, out=state.space) + 1

    report = sanitize(lambda i: None, step, owners=state)
    assert set(report.kinds) == {"lazy-init-recorded"}, str(report)
    assert "space" in [finding.tensor for finding in report]


RULES: list[tuple[str, Callable[[torch.Tensor], Any]]] = [
    ("host-sync", lambda x: x * x.sum().item()),
    ("host-sync", lambda x: x if x.sum() > 0 else -x),
    ("host-sync", lambda x: x.cpu() * 2),
    ("host-sync", lambda x: (cuda.synchronize() if cuda.is_emulated else None, x * 2)[1]),
    ("host-data", lambda x: x + torch.tensor([1.0, 2.0, 3.0])),
    ("dynamic-shape", lambda x: x[x > 0].sum()),
    ("dynamic-shape", lambda x: x.nonzero().sum()),
]


@pytest.mark.parametrize(("kind", "work"), RULES)
def test_what_a_capture_refuses_is_found_with_its_line(kind: str, work: Callable[[torch.Tensor], Any]) -> None:
    state = SimpleNamespace(x=torch.tensor([1.0, -2.0, 3.0]))

    def prepare(i: int) -> None:
        state.x.fill_(i + 1.0)

    report = sanitize(prepare, lambda: work(state.x), owners=state)
    assert report.kinds == [kind], str(report)
    assert report.findings[0].where.file == __file__


def test_a_generator_must_be_registered() -> None:
    generator, x = torch.Generator(), torch.zeros(3)

    def step() -> torch.Tensor:
        return x + torch.rand(3, generator=generator)

    only(sanitize(lambda i: None, step), "unregistered-rng", None)
    assert not sanitize(lambda i: None, step, owners=(generator,))


def test_seeding_in_the_step_is_work_of_the_host() -> None:
    x = torch.zeros(3)

    def step() -> torch.Tensor:
        torch.manual_seed(3)
        return x + torch.rand(3)

    assert sanitize(lambda i: None, step).kinds == ["unregistered-rng"]


def test_a_stream_must_be_joined() -> None:
    side, x = emulator.Stream(), torch.ones(3)

    def step() -> torch.Tensor:
        side.wait_stream(emulator.current_stream())
        with emulator.stream(side):
            y = x * 2
        return x + 1 if y is None else y

    report = sanitize(lambda i: None, step)
    assert report.kinds == ["unjoined-stream"], str(report)
    assert report.findings[0].where.line == line_of(test_a_stream_must_be_joined, "y = x * 2")


def test_work_on_a_stream_outside_of_the_capture_is_eager() -> None:
    side, x = emulator.Stream(), torch.ones(3)

    def step() -> torch.Tensor:
        with emulator.stream(side):
            y = x * 2
        return x + 1 if y is None else x - 1

    report = sanitize(lambda i: None, step)
    assert report.kinds[0] == "silent-eager", str(report)


def test_a_step_that_computes_nothing_any_more_is_eager() -> None:
    state, x = SimpleNamespace(done=None), torch.ones(3)

    def step() -> torch.Tensor:
        if state.done is None:
            state.done = x * 2
        return state.done

    assert sanitize(lambda i: None, step).kinds == ["silent-eager"]


def test_a_step_that_holds_on_to_its_results_grows() -> None:
    history, x = [], torch.ones(300)  # type: ignore[var-annotated]

    def step() -> torch.Tensor:
        out = x * 2
        history.append(out)
        return out

    finding = only(sanitize(lambda i: None, step), "pool-growth", "history")
    assert finding.where.line == line_of(test_a_step_that_holds_on_to_its_results_grows, "out = x * 2")


def test_several_faults_are_all_found() -> None:
    state = SimpleNamespace(a=torch.ones(3), b=torch.ones(3), scale=2.0)

    def prepare(i: int) -> None:
        state.a = torch.full((3,), float(i))
        state.b = torch.full((3,), float(-i))
        state.scale = 2.0 + i

    def step() -> torch.Tensor:
        return state.a * state.scale + state.b * state.b.max().item()

    report = sanitize(prepare, step, owners=state)
    found = {(f.kind, f.tensor) for f in report}
    assert {("moved-address", "a"), ("moved-address", "b")} <= found, str(report)
    assert "host-sync" in report.kinds


def test_a_name_for_another_part_of_the_same_memory_has_moved() -> None:
    rows = torch.arange(8.0).view(4, 2)
    state = SimpleNamespace(row=rows[0])

    def prepare(i: int) -> None:
        state.row = rows[i]

    only(sanitize(prepare, lambda: state.row * 2, owners=state), "moved-address", "row")


@pytest.mark.parametrize("says_so", [False, True])
def test_a_step_without_a_graph_is_found_where_nothing_tells_of_it(says_so: bool) -> None:
    x = torch.zeros(2)

    def prepare(i: int) -> bool:
        x.fill_(float(i))
        if i == 2 and says_so:
            warnings.warn("runs eagerly", stacklevel=2)
        return i != 2

    def step() -> torch.Tensor:
        return x * 2

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        report = sanitize(prepare, step, owners={"x": x})
    assert report.rounds == 2
    assert [str(warning.message) for warning in heard] == ["runs eagerly"] * says_so
    if says_so:
        assert not report, str(report)
    else:
        assert only(report, "silent-eager", None).where.function == "prepare"


def test_a_wait_for_an_old_event_is_one_finding() -> None:
    x, side, known = torch.ones(2), emulator.Stream(), {}

    def step() -> torch.Tensor:
        side.wait_stream(emulator.current_stream())
        with emulator.stream(side):
            y = x * 2
        known.setdefault("done", side.record_event())
        emulator.current_stream().wait_event(known["done"])
        return y + 1

    only(sanitize(lambda i: None, step, owners={"x": x}), "unjoined-stream", None)


def test_work_outside_of_the_capture_is_one_finding() -> None:
    x, y = torch.ones(2), torch.ones(2)

    def step() -> torch.Tensor:
        with emulator.stream(emulator.default_stream()):
            y.copy_(x * 2)
        return y + 1

    only(sanitize(lambda i: x.fill_(float(i)), step, owners={"x": x, "y": y}), "silent-eager", None)
