"""Saves what a benchmark found, with the machine it was found on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onelaunch.machine import machine

DATA = Path(__file__).resolve().parent.parent / "src" / "onelaunch" / "data"


def save(name: str, figures: dict[str, Any]) -> Path:
    """Write ``figures``, with what ``machine`` says, to ``src/onelaunch/data/NAME.json``; the chapters draw it."""
    path = DATA / f"{name}.json"
    path.write_text(json.dumps({**machine(), **figures}, indent=1) + "\n", encoding="utf-8")
    return path
