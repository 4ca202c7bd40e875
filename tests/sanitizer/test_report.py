"""The report as text, as HTML and as data, and arguments that mean nothing."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from onelaunch import emulator, sanitize
from onelaunch.sanitizer import KINDS, Finding, FindingsError, Report, SanitizerError
from onelaunch.tape.source import Source


@pytest.fixture(scope="module")
def report() -> Report:
    state, x = SimpleNamespace(scale=1.0), torch.ones(3)

    def prepare(i: int) -> None:
        state.scale = 1.0 + i

    return sanitize(prepare, lambda: x * state.scale, owners=state)


def test_a_terminal_shows_kind_tensor_line_reason_and_mend(report: Report) -> None:
    text = str(report)
    assert text.startswith("1 finding; 3 replays of 1 kernel beside eager\nfrozen-value scale at ")
    assert "test_report.py:" in text
    assert "\n  why: " in text
    assert "\n  fix: " in text
    assert max(map(len, text.splitlines())) <= 100
    assert repr(report) == text


def test_a_notebook_shows_the_same_and_nothing_of_the_code_becomes_markup(report: Report) -> None:
    html = report._repr_html_()
    assert "frozen-value" in html
    assert "<code>scale</code>" in html
    strange = Report([Finding("stale-input", "<b>&", Source("a<i>.py", 3, "f"), "1 < 2", "<script>")], 1, 1)
    assert "<b>" not in strange._repr_html_()
    assert "<script>" not in strange._repr_html_()


def test_data_can_be_written_as_json_and_read_back(report: Report) -> None:
    data = json.loads(json.dumps(report.as_dict()))
    (finding,) = data["findings"]
    assert set(finding) == {"kind", "tensor", "where", "why", "fix"}
    assert finding["kind"] in KINDS
    assert finding["where"]["line"] == report.findings[0].where.line
    assert data["rounds"] == 3
    assert report.kinds == ["frozen-value"]
    assert list(report) == report.findings


def test_an_empty_report_says_what_was_compared() -> None:
    x = torch.ones(2)
    report = sanitize(lambda i: None, lambda: x * 2, rounds=1)
    assert len(report) == 0
    assert str(report) == "nothing found; 1 replay of 1 kernel beside eager"


def test_an_error_made_of_findings_carries_the_report(report: Report) -> None:
    error = FindingsError("this", report)
    assert error.report is report
    assert "frozen-value scale" in str(error)


def nothing(i: int) -> None:
    pass


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((3, nothing), TypeError, "prepare must be a function; found 3"),
        ((nothing, None), TypeError, "step must be a function; found None"),
        ((nothing, torch.ones, 0), ValueError, "rounds must be a number of replays, at least 1; found 0"),
        ((nothing, torch.ones, True), ValueError, "found True"),
        ((nothing, torch.ones, 1, 7), TypeError, "owners: found 7, which holds no tensors"),
        ((nothing, torch.ones, 1, (), 7), TypeError, "padding must be a function; found 7"),
        ((nothing, lambda: torch.ones(2) + 1, 1, (), lambda i: [3]), TypeError, "padding must return views of tensors"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(arguments: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        sanitize(*arguments)


def test_a_step_that_captures_by_itself_cannot_be_checked_and_everything_works_afterwards() -> None:
    x = torch.ones(2)

    def step() -> torch.Tensor:
        with emulator.graph(emulator.CUDAGraph()):
            return x * 2

    with pytest.raises(SanitizerError, match=r"the step cannot be checked: capture refused capture_begin"):
        sanitize(nothing, step)
    assert not sanitize(nothing, lambda: x * 2)


@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_what_the_step_raises_comes_through_and_leaves_nothing_behind(call: int) -> None:
    x, calls = torch.ones(2), 0

    def step() -> torch.Tensor:
        nonlocal calls
        calls += 1
        x.add_(1)
        if calls == call:
            raise KeyError("mine")
        return x * 2

    with pytest.raises(KeyError, match="mine"):
        sanitize(nothing, step, rounds=5)
    assert x.tolist()[0] < 9
    assert not emulator.is_current_stream_capturing()
    assert not sanitize(nothing, lambda: x * 2)
