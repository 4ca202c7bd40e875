"""Each exhibit: broken gives exactly the finding that it is there for, mended gives none and the right values."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from onelaunch import museum
from onelaunch.sanitizer import KINDS

EXHIBITS = {exhibit.key: exhibit for exhibit in museum.exhibits()}
REPORT = r"[\w.-]+/[\w.-]+#[1-9]\d*"
MECHANISM = 30  # lines that do something


@pytest.fixture(params=EXHIBITS)
def exhibit(request) -> museum.Exhibit:
    return EXHIBITS[request.param]


def test_broken_gives_exactly_the_expected_findings(exhibit):
    report = exhibit.broken().sanitize()
    assert [(finding.kind, finding.tensor) for finding in report.findings] == list(exhibit.findings)


def test_mended_gives_none(exhibit):
    assert [str(finding) for finding in exhibit.mended().sanitize().findings] == []


def test_mended_replays_the_values_of_eager(exhibit):
    assert exhibit.mended().replayed() == exhibit.mended().eager()


def test_broken_shows_other_values_or_an_error(exhibit):
    right = exhibit.mended().eager()
    try:
        wrong = exhibit.broken().replayed()
    except RuntimeError:
        assert not exhibit.silent
        return
    slow_or_large = {"pool-growth", "silent-eager", "lazy-init-recorded"}  # the values may well be right
    assert wrong != right or slow_or_large & {kind for kind, _ in exhibit.findings}


def test_every_topic_has_two_exhibits_at_least():
    count = Counter(exhibit.topic for exhibit in EXHIBITS.values())
    assert set(count) == set(museum.TOPICS)
    assert {topic: n for topic, n in count.items() if n < 2} == {}
    assert len(EXHIBITS) >= 40


def test_an_exhibit_is_well_formed(exhibit):
    assert exhibit.reports
    assert [report for report in exhibit.reports if not re.fullmatch(REPORT, report)] == []
    assert exhibit.findings
    assert {kind for kind, _ in exhibit.findings} <= set(KINDS)
    for text in (exhibit.seen, exhibit.mend):
        assert text.endswith(".")
        assert len(text) > 30
    assert not exhibit.title.endswith(".")
    assert exhibit.broken.__module__.rpartition(".")[2] == exhibit.key.replace("-", "_")


def test_a_mechanism_is_short(exhibit):
    bodies = [node for node in ast.parse(exhibit.code).body if getattr(node, "name", "") not in ("broken", "mended")]
    lines = [line for node in bodies for line in ast.unparse(node).splitlines() if line.strip()]
    assert len(lines) <= MECHANISM
    assert max(map(len, exhibit.code.splitlines())) <= 80


def test_titles_are_told_apart():
    titles = [museum.gallery.anchor(exhibit.title) for exhibit in EXHIBITS.values()]
    assert len(titles) == len(set(titles))


def test_what_is_not_shown_says_why():
    for gap in museum.NOT_SHOWN:
        assert gap.what.endswith(".")
        assert gap.why.endswith(".")
        assert [report for report in gap.reports if not re.fullmatch(REPORT, report)] == []


def test_an_unknown_key_is_answered_with_those_like_it():
    with pytest.raises(ValueError, match="vllm-43810"):
        museum.exhibit("vllm-1")


def test_an_exhibit_shows_its_report_code_values_and_finding(capsys):
    museum.exhibit("vllm-43810").show()
    shown = capsys.readouterr().out
    for part in (
        "Slot -1 is a slot",
        "vllm-project/vllm#43810",
        "def build(",
        "right:",
        "graph:",
        "padding-leak",
        "fix:",
    ):
        assert part in shown
    assert "mended: nothing found" in shown
