"""The list of exhibits on a page, and the chapter that is written from them."""

from __future__ import annotations

import pytest

import museum_chapter
from onelaunch import museum
from onelaunch.viz import measured


def test_the_chapter_shows_the_exhibits_as_they_are():
    chapter = museum_chapter.CHAPTER.read_text(encoding="utf-8")
    assert museum_chapter.with_gallery(chapter) == chapter, "run `make museum`"


def test_a_changed_exhibit_changes_the_chapter():
    chapter = museum_chapter.CHAPTER.read_text(encoding="utf-8")
    changed = chapter.replace("#### Slot -1 is a slot", "#### Another title")
    assert changed != chapter
    assert museum_chapter.with_gallery(changed) == chapter


def test_a_chapter_without_its_marks_is_refused():
    with pytest.raises(ValueError, match="gallery"):
        museum_chapter.with_gallery("# %% [markdown]\n")


def test_the_list_is_whole_without_javascript():
    html = museum.Gallery(museum.exhibits())._repr_html_()
    assert html.count("<li ") == len(museum.exhibits())
    assert "<form hidden>" in html  # a control that does nothing is not shown
    assert "http" not in html


def test_the_list_is_text_in_a_terminal():
    text = repr(museum.Gallery(museum.exhibits()))
    assert "vllm-43810: Slot -1 is a slot (silent, padding-leak)" in text


def test_a_gallery_of_nothing_is_refused():
    with pytest.raises(ValueError, match="found none"):
        museum.Gallery([])


def test_what_was_measured_is_of_the_exhibits_that_there_are():
    saved = measured("museum")
    assert (saved["exhibits"], saved["named"], saved["false_alarms"]) == (len(museum.exhibits()),) * 2 + (0,)


def test_no_false_alarm_was_measured_on_the_models_that_replay():
    saved, models = measured("sanitizer"), measured("transformers_models")["rows"]
    replay = {name for name, row in models.items() if row["outcome"] == "bitwise" and row["how"] == "prepared"}
    assert {name for name, row in saved["rows"].items() if row["outcome"] == "clean"} == replay
    assert saved["findings"] == 0
    for batch in ("", "padded_"):
        assert saved["step"][f"{batch}checked_ms"] < 10 * saved["step"][f"{batch}eager_ms"]


def test_no_false_alarm_was_measured_on_the_engine_in_any_configuration():
    engine = measured("sanitizer")["engine"]
    rows = engine["rows"]
    assert engine["findings"] == sum(len(row["findings"]) for row in rows) == 0
    assert all(row.get("same_text", True) and row["steps"] for row in rows)
    assert all(row["named"] == row.get("rightly", []) for row in rows)
    for name, values in {
        "model": {"random:llama", "random:qwen3", "smollm2-135m"},
        "page_size": {1, 4, 16, 64},
        "graph": {"tape", "rerun"},
        "attention_backend": {"gather", "torch"},
    }.items():
        assert {row[name] for row in rows} == values
