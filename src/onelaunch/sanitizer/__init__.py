"""What goes wrong silently when a step is replayed: eager and replay from the same state, and the cause of each
difference with its name, its line and its mend."""

from __future__ import annotations

from onelaunch.sanitizer.report import KINDS, Finding, FindingsError, Kind, Report
from onelaunch.sanitizer.run import SanitizerError, sanitize

__all__ = ["KINDS", "Finding", "FindingsError", "Kind", "Report", "SanitizerError", "sanitize"]
