"""Where this system keeps what can be fetched or made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """``ONELAUNCH_CACHE``, or the folder where this system keeps what can be fetched again."""
    given = os.environ.get("ONELAUNCH_CACHE")
    if given:
        return Path(given).expanduser()
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "onelaunch"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "onelaunch"
