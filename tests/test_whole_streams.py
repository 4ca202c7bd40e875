"""What a cell prints piece by piece is one text on the page."""

from __future__ import annotations

from myst_nb.core import render
from nbformat.v4 import new_output

import whole_streams


def test_pieces_are_joined_as_they_are() -> None:
    shown = whole_streams.join_streams(
        [
            new_output("stream", name="stdout", text="Once"),
            new_output("stream", name="stderr", text="a warning\n"),
            new_output("stream", name="stdout", text=" upon\n\n"),
            new_output("display_data", data={"text/plain": "a figure"}),
            new_output("stream", name="stdout", text="  a time"),
        ]
    )
    assert [output.get("text") for output in shown] == ["Once upon\n\n  a time", "a warning\n", None]


def test_a_progress_bar_leaves_its_last_state_or_nothing() -> None:
    bar = [new_output("stream", name="stderr", text=text) for text in ("0%", "\r50%", "\r100%", "\ndone\n")]
    assert [output.text for output in whole_streams.join_streams(bar)] == ["100%\ndone\n"]
    cleared = [new_output("stream", name="stderr", text=text) for text in ("0%", "\r50%", "\r    \r")]
    assert whole_streams.join_streams(cleared) == []


def test_the_outputs_that_came_in_are_left_as_they_were() -> None:
    outputs = [new_output("stream", name="stdout", text=text) for text in ("a", "b")]
    whole_streams.join_streams(outputs)
    assert [output.text for output in outputs] == ["a", "b"]


def test_the_page_is_made_with_it() -> None:
    whole_streams.setup(None)  # type: ignore[arg-type]  # the application is not asked for anything
    assert render.coalesce_streams is whole_streams.join_streams
