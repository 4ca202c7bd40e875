"""Everything that must hold, one step after the other: what `make test` runs.

A step that fails does not hide the ones behind it: all of them run, and the end says which failed. Two steps that keep
one core busy each run side by side; what the second of them says is shown when the first is done.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from project import ROOT

PYTHON = sys.executable
PYTEST = [PYTHON, "-m", "pytest", "--durations=10"]
# A process for each core. With more than one thread each, they would wait for each other.
WORKERS = ["-n", "auto", "--maxprocesses", "4"]


@dataclass(frozen=True)
class Step:
    """One thing that must hold. one_thread: PyTorch has to keep to one, as something else runs at the same time."""

    name: str
    command: Sequence[str]
    one_thread: bool = False


# Steps in one row run at the same time.
STEPS: list[list[Step]] = [
    [Step("format", [PYTHON, "-m", "ruff", "format", "--check", "."])],
    [Step("lint", [PYTHON, "-m", "ruff", "check", "."])],
    [Step("types", [PYTHON, "-m", "mypy"])],
    [Step("model", [PYTHON, "-m", "onelaunch.models.embedded"])],
    # A file at a time: fixtures that load the model are shared within a file.
    [Step("unit tests", [*PYTEST, *WORKERS, "--dist", "loadfile", "tests", "--ignore=tests/site"], one_thread=True)],
    [Step("notebooks are what their sources build", [PYTHON, "book/scripts/notebooks.py", "check"])],
    [Step("exercises are what their sources build", [PYTHON, "book/scripts/exercises.py", "check"])],
    [
        Step("notebooks under nbval", [PYTHON, "book/scripts/notebooks.py", "test"], one_thread=True),
        Step("strict build of the site", [PYTHON, "book/scripts/build_site.py"], one_thread=True),
    ],
    # A page at a time, as tests/site/conftest.py has it: each of its views is loaded once for all tests.
    [Step("browser checks", [*PYTEST, *WORKERS, "--dist", "loadscope", "tests/site"])],
]
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_CHROMIUM = (
    "SKIPPED: no Chromium here, so nothing was checked in a browser. Install one (Debian and Ubuntu:\n"
    "apt-get install chromium; elsewhere Chrome or Chromium) or name one: CHROMIUM=/path/to/it make test"
)


def main() -> int:
    """Run the steps and sum up. Returns the exit code."""
    results: list[tuple[str, str, float]] = []
    total = sum(map(len, STEPS))
    for row in STEPS:
        running: list[Running] = []
        for step in row:
            title = f"\n=== [{len(results) + len(running) + 1}/{total}] {step.name}"
            # In CI a browser that is missing is a fault, and the checks themselves then fail.
            if step.name == "browser checks" and find_chromium() is None and not os.environ.get("CI"):
                print(f"{title}\n{NO_CHROMIUM}", flush=True)
                results.append((step.name, "SKIPPED, no Chromium", 0.0))
                continue
            running.append(Running(step, title, aside=bool(running)))
        results += [each.result() for each in running]
    print("\n=== summary")
    for name, result, seconds in results:
        print(f"  {result:22} {seconds:6.1f} s  {name}")
    failed = [name for name, result, _ in results if result.startswith("FAILED")]
    print(f"make test: {'FAILED: ' + ', '.join(failed) if failed else 'everything that ran passed'}", flush=True)
    return 1 if failed else 0


class Running:
    """A step at work. aside: whether another has the terminal, so that this one is shown at its end."""

    def __init__(self, step: Step, title: str, aside: bool) -> None:
        self.step, self.title = step, title
        self.output: IO[bytes] | None = tempfile.TemporaryFile() if aside else None  # noqa: SIM115 - closed with the result
        if not aside:
            print(title, flush=True)
        env = os.environ | ({"OMP_NUM_THREADS": "1"} if step.one_thread else {})
        self.start = time.perf_counter()
        self.process = subprocess.Popen(
            step.command,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT if aside else None,
        )

    def result(self) -> tuple[str, str, float]:
        """Wait for the end. Returns name, verdict and seconds; those of a step aside last until the other one's end."""
        code = self.process.wait()
        seconds = time.perf_counter() - self.start
        if self.output is not None:
            self.output.seek(0)
            print(self.title, flush=True)
            sys.stdout.buffer.write(self.output.read())
            sys.stdout.buffer.flush()
            self.output.close()
        return self.step.name, "passed" if code == 0 else f"FAILED (exit code {code})", seconds


def find_chromium() -> str | None:
    """The Chromium that the browser checks use: $CHROMIUM, or the first that is on the path."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named if Path(named).exists() else None
    return next((path for path in map(shutil.which, CHROMIUMS) if path), None)


if __name__ == "__main__":
    sys.exit(main())
