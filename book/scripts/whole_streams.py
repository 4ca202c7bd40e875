"""A Sphinx extension: text that a cell prints piece by piece stands on the page as it stood on the screen.

MyST-NB joins a cell's pieces with `nb_merge_streams`, but takes each for whole lines: text that is printed word by word
comes out as a column of words. Here the pieces are joined as they are, and a progress bar leaves what it leaves on a
screen: its last state, or nothing.
"""

from __future__ import annotations

import re
from typing import Any

from myst_nb.core import render
from nbformat import NotebookNode
from sphinx.application import Sphinx

OVERWRITTEN = re.compile(r"[^\n]*\r(?=[^\n])")  # a carriage return goes back to the start of the line


def join_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """The outputs of a cell with all pieces of stdout in one, and all of stderr, where the first of each stood."""
    joined: list[NotebookNode] = []
    first: dict[str, NotebookNode] = {}
    for output in outputs:
        if output["output_type"] != "stream":
            joined.append(output)
        elif output["name"] in first:
            first[output["name"]]["text"] += output["text"]
        else:
            first[output["name"]] = NotebookNode(output)
            joined.append(first[output["name"]])
    for output in first.values():
        output["text"] = OVERWRITTEN.sub("", output["text"])
    return [output for output in joined if output["output_type"] != "stream" or output["text"].strip()]


def setup(app: Sphinx) -> dict[str, Any]:
    """Put it in the place of MyST-NB's own."""
    if not hasattr(render, "coalesce_streams"):
        raise RuntimeError(
            "myst_nb.core.render has no coalesce_streams any more: see whether it joins streams rightly now"
        )
    render.coalesce_streams = join_streams
    return {"parallel_read_safe": True, "parallel_write_safe": True}
