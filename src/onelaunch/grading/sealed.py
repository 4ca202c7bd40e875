"""What a check's cell runs when a notebook is graded from outside: the check as it is on disk, whatever the answers did
to the one in memory.

Its line goes past ``sys.stdout``, which an answer may have replaced, and carries a seal that was made for this run; all
else goes into a file. So a printed "PASS" counts for nothing.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

KEPT = "onelaunch.grading.engines"  # holds loaded models, which take long


def sealed(line: str, seal: str) -> str:
    """The line with what proves that it was written by the check of this run."""
    return f"{line} [{hashlib.sha256(f'{seal} {line}'.encode()).hexdigest()[:16]}]"


def judge(namespace: Mapping[str, Any], key: str, number: int, seal: str, file: str, seconds: float) -> None:
    """Judge one check, show its sealed line, and append the verdict to ``file``."""
    for name in [name for name in sys.modules if name.startswith("onelaunch.grading") and name != KEPT]:
        del sys.modules[name]
    from IPython.display import publish_display_data

    from onelaunch.grading import checks

    verdict = checks.load(key).judge(number, namespace, seconds=seconds)
    with open(file, "a", encoding="utf-8") as verdicts:
        verdicts.write(json.dumps({"seal": seal, **asdict(verdict)}) + "\n")
    publish_display_data({"text/plain": sealed(verdict.line, seal)})
