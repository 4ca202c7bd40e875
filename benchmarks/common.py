"""What every benchmark writes beside its figures: on what they were measured, with what, and when."""

from __future__ import annotations

import datetime
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

DATA = Path(__file__).resolve().parent.parent / "src" / "onelaunch" / "data"


def machine() -> dict[str, Any]:
    """Hardware, versions and date of this run."""
    return {
        "hardware": {
            "cpu": _cpu_name(),
            "cores": os.cpu_count(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        },
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": version("transformers"),
            "onelaunch": version("onelaunch"),
        },
        "date": datetime.date.today().isoformat(),
    }


def save(name: str, figures: dict[str, Any]) -> Path:
    """Write ``figures``, with what ``machine`` says, to ``src/onelaunch/data/NAME.json``; the chapters draw it."""
    path = DATA / f"{name}.json"
    path.write_text(json.dumps({**machine(), **figures}, indent=1) + "\n", encoding="utf-8")
    return path


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
