"""``onelaunch trace FILE``: what a profile says about launches, printed, as JSON, and drawn as a page."""

from __future__ import annotations

import json
import sys
from typing import Any

CANNOT = 2


def add_parser(commands: Any) -> None:
    """Add ``trace`` to the commands of ``onelaunch``."""
    parser = commands.add_parser(
        "trace",
        help="say from a profile whether launches hold a GPU up",
        description="Read a trace of torch.profiler, plain or .gz, from CUDA or HIP: how busy the device was, what it "
        "waited for, and what a graph would save at most. Exits with 2 if the file cannot be read as such a trace.",
    )
    parser.add_argument("file", metavar="FILE", help="what export_chrome_trace or tensorboard_trace_handler wrote")
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    parser.set_defaults(run=lambda args: main(args.file, args.json))


def main(path: str, as_json: bool = False) -> int:
    """Analyse the trace at ``path`` and print what it says.

    Returns 0, or 2 where the file cannot be read as a trace of a device: then one sentence says why.
    """
    from onelaunch.timeline.trace import TraceError, open_trace
    from onelaunch.timeline.trace_report import as_dict, as_text

    try:
        trace = open_trace(path)
    except TraceError as error:
        print(f"onelaunch trace: {error}", file=sys.stderr)
        return CANNOT
    print(json.dumps(as_dict(trace), indent=1) if as_json else as_text(trace))
    return 0
