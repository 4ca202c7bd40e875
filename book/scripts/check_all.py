"""Everything that must hold, one step after the other: what `make test` runs.

A step that fails does not hide the ones behind it: all of them run, and the end says which failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from project import ROOT

PYTHON = sys.executable
PYTEST = [PYTHON, "-m", "pytest", "--durations=10"]
# A process for each core, a file at a time: fixtures that load the model are shared within a file. With more than one
# thread each, they would wait for each other.
IN_PARALLEL = ["-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"]
STEPS: list[tuple[str, list[str]]] = [
    ("format", [PYTHON, "-m", "ruff", "format", "--check", "."]),
    ("lint", [PYTHON, "-m", "ruff", "check", "."]),
    ("types", [PYTHON, "-m", "mypy"]),
    ("model", [PYTHON, "-m", "onelaunch.models.embedded"]),
    ("unit tests", [*PYTEST, *IN_PARALLEL, "tests", "--ignore=tests/site"]),
    ("notebooks are what their sources build", [PYTHON, "book/scripts/notebooks.py", "check"]),
    ("notebooks under nbval", [PYTHON, "book/scripts/notebooks.py", "test"]),
    ("strict build of the site", [PYTHON, "book/scripts/build_site.py"]),
    ("browser checks", [*PYTEST, "tests/site"]),
]
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> int:
    """Run the steps and sum up. Returns the exit code."""
    results = []
    for at, (name, command) in enumerate(STEPS, start=1):
        print(f"\n=== [{at}/{len(STEPS)}] {name}", flush=True)
        start = time.perf_counter()
        # In CI a browser that is missing is a fault, and the checks themselves then fail.
        if name == "browser checks" and find_chromium() is None and not os.environ.get("CI"):
            print(
                "SKIPPED: no Chromium here, so nothing was checked in a browser. Install one (Debian and Ubuntu:\n"
                "apt-get install chromium; elsewhere Chrome or Chromium) or name one: CHROMIUM=/path/to/it make test",
                flush=True,
            )
            results.append((name, "SKIPPED, no Chromium", 0.0))
            continue
        env = os.environ | ({"OMP_NUM_THREADS": "1"} if "--dist" in command else {})
        code = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, env=env).returncode
        results.append((name, "passed" if code == 0 else f"FAILED (exit code {code})", time.perf_counter() - start))
    print("\n=== summary")
    for name, result, seconds in results:
        print(f"  {result:22} {seconds:6.1f} s  {name}")
    failed = [name for name, result, _ in results if result.startswith("FAILED")]
    print(f"make test: {'FAILED: ' + ', '.join(failed) if failed else 'everything that ran passed'}", flush=True)
    return 1 if failed else 0


def find_chromium() -> str | None:
    """The Chromium that the browser checks use: $CHROMIUM, or the first that is on the path."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named if Path(named).exists() else None
    return next((path for path in map(shutil.which, CHROMIUMS) if path), None)


if __name__ == "__main__":
    sys.exit(main())
