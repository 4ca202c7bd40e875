"""A Python that has all the libraries but not onelaunch, as on Colab: notebooks show there that they need nothing else.

A notebook's first cell fetches the package with pip, here from this checkout through ONELAUNCH_SOURCE.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from project import ROOT

KERNEL = "elsewhere"  # its name for Jupyter


@dataclass(frozen=True)
class Elsewhere:
    """prefix: where that Python lies. environment: for processes that run it, or start its kernel by name."""

    prefix: Path
    environment: dict[str, str]

    @property
    def python(self) -> str:
        """The interpreter."""
        return str(self.prefix / "bin" / "python")


def make(folder: Path) -> Elsewhere:
    """Make one in ``folder``.

    The libraries come through a path line, and Python reads no .pth files in folders that are added that way: that
    leaves out the editable install, and nothing else.
    """
    prefix = folder / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(prefix), "platbase": str(prefix)}))
    libraries = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    (site / "libraries.pth").write_text("".join(f"{path}\n" for path in libraries))
    kernel = folder / "jupyter" / "kernels" / KERNEL
    kernel.mkdir(parents=True)
    argv = [str(prefix / "bin" / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": KERNEL, "language": "python"}))
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")}
    # pip reads "no build isolation" the wrong way round in its environment: 0 turns the isolation off, so that
    # hatchling is taken from the installed libraries instead of a registry.
    pip = {"ONELAUNCH_SOURCE": str(ROOT), "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return Elsewhere(prefix, env | pip | {"JUPYTER_PATH": str(folder / "jupyter")})
