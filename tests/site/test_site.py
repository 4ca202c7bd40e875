"""What a reader meets on every page: wide and on a phone, on a light and on a dark screen."""

from __future__ import annotations

import re


def test_nothing_is_reported_to_the_console(views):
    assert {view: seen.errors for view, seen in views.items() if seen.errors} == {}


def test_nothing_is_asked_of_another_host(views):
    assert {view: seen.elsewhere for view, seen in views.items() if seen.elsewhere} == {}


def test_every_request_is_answered(views):
    assert {view: seen.failed for view, seen in views.items() if seen.failed} == {}


def test_the_page_is_no_wider_than_the_screen(views):
    too_wide = {view: seen.measured["overflow"] for view, seen in views.items() if seen.measured["overflow"] > 0}
    assert too_wide == {}, "pixels that stick out; code, tables and figures must scroll in their own frame"


def test_all_text_stands_out_from_what_is_behind_it(views):
    assert {view: seen.measured["low"] for view, seen in views.items() if seen.measured["low"]} == {}, (
        "contrast below 4.5"
    )
    assert all(seen.measured["texts"] > 2 for seen in views.values()), "hardly any text was measured"


def test_the_page_follows_the_reader_s_colour_scheme(views):
    assert all(seen.measured["theme"] == view.rpartition(" ")[2] for view, seen in views.items())


def test_nothing_covers_the_article(views):
    assert {view: seen.measured["covered"] for view, seen in views.items() if seen.measured["covered"]} == {}


def test_every_picture_says_what_it_shows(views):
    for seen in views.values():
        for picture in seen.measured["alts"]:
            alt = picture["alt"]
            assert alt.strip(), f"no alt text: {picture['what']}"
            assert not re.search(r"[/\\]|\.(png|svg|jpe?g|gif|webp)\b", alt), f"alt text that is a path: {alt!r}"
            assert not picture["content"] or len(alt.split()) >= 5, f"alt text that says too little: {alt!r}"


def test_no_figure_stands_in_a_box_of_another_colour(views):
    assert {view: seen.measured["boxes"] for view, seen in views.items() if seen.measured["boxes"]} == {}


def test_no_id_is_given_twice(views):
    assert {view: seen.measured["twice"] for view, seen in views.items() if seen.measured["twice"]} == {}


def test_the_page_has_a_title_a_language_and_one_main_heading(views):
    for seen in views.values():
        assert "One Launch" in seen.measured["title"]
        assert seen.measured["lang"] == "en"
        assert seen.measured["headings"] == 1
