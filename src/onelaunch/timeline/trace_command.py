"""``onelaunch trace FILE``: what a profile says about launches, printed, as JSON, and drawn as a page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

CANNOT = 2


def add_parser(commands: Any) -> None:
    """Add ``trace`` to the commands of ``onelaunch``."""
    parser = commands.add_parser(
        "trace",
        help="say from a profile whether launches hold a GPU up",
        description="Read a trace of torch.profiler, plain or .gz, from CUDA or HIP: how busy the device was, what it "
        "waited for, and what a graph would save at most. Prints that, and draws it into a page that needs no network. "
        "Exits with 2 if the file cannot be read as such a trace.",
    )
    parser.add_argument("file", metavar="FILE", help="what export_chrome_trace or tensorboard_trace_handler wrote")
    parser.add_argument("--json", action="store_true", help="print it as JSON, and draw nothing unless --html is given")
    drawn = parser.add_mutually_exclusive_group()
    drawn.add_argument(
        "--html", metavar="OUT", help="where to draw the page (default: NAME.html in this folder, for NAME.json.gz)"
    )
    drawn.add_argument("--no-html", action="store_true", help="draw nothing")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    return main(args.file, as_json=args.json, out=args.html, draw=not (args.no_html or args.json))


def main(path: str, as_json: bool = False, out: str | None = None, draw: bool = True) -> int:
    """Analyse the trace at ``path``, print what it says and draw it.

    out: where to draw the page. draw: without ``out``, whether to draw it into the current folder.

    Returns 0, or 2 where the file cannot be read as a trace of a device or the page cannot be written: then a sentence
    on stderr says why.
    """
    from onelaunch.timeline.trace import TraceError, open_trace
    from onelaunch.timeline.trace_report import as_dict, as_text

    try:
        trace = open_trace(path)
    except TraceError as error:
        return _cannot(str(error))
    print(json.dumps(as_dict(trace), indent=1) if as_json else as_text(trace))
    if out is None and not draw:
        return 0

    from onelaunch.timeline import trace_html

    page = trace_html.default_path(Path(path)) if out is None else Path(out)
    try:
        if page.exists() and page.samefile(path):
            return _cannot(f"--html {page} is the trace itself. Name another file.")
        if out is None and page.exists() and not trace_html.is_ours(page):
            return _cannot(f"{page} is here already and no timeline, so it was left alone. Name a file with --html.")
        trace_html.write(trace, page)
    except OSError as error:
        return _cannot(f"the timeline cannot be written to {page}: {error.strerror}. Name a file with --html.")
    print(f"\nTimeline: {page}", file=sys.stderr if as_json else sys.stdout)
    return 0


def _cannot(why: str) -> int:
    print(f"onelaunch trace: {why}", file=sys.stderr)
    return CANNOT
