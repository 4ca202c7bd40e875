"""What stands beside every measurement: on what it was made, with what, and when."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import onelaunch


def machine() -> dict[str, Any]:
    """``hardware``, ``versions`` and ``date`` of this run, as plain values for JSON."""
    import torch

    return {
        "hardware": {
            "cpu": cpu_name(),
            "cores": os.cpu_count(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        },
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": _version("transformers"),
            "onelaunch": onelaunch.__version__,
        },
        "date": datetime.date.today().isoformat(),
    }


def in_words(measurement: Mapping[str, Any], packages: tuple[str, ...] = ("torch", "transformers")) -> str:
    """Hardware, versions and date of a saved measurement in one line. packages: those whose versions are told."""
    hardware, versions = measurement["hardware"], measurement["versions"]
    if isinstance(hardware, Mapping):
        device = hardware.get("gpu") or hardware.get("cpu")
        cores = f" ({hardware['cores']} cores)" if hardware.get("cores") and not hardware.get("gpu") else ""
        hardware = f"{device}{cores}"
    if isinstance(versions, Mapping):
        versions = ", ".join(f"{name} {versions[name]}" for name in packages if versions.get(name))
    return f"{hardware}, {versions}, {measurement['date']}"


def cpu_name() -> str:
    """The processor's name, or the architecture's where the system does not tell."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
