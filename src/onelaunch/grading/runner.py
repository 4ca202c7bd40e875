"""Runs a notebook under nbval, in a process of its own: the only module of the package that knows nbval.

``python -m onelaunch.grading.runner FOLDER`` reads ``job.json`` and ``graded.ipynb`` there and writes
``outcomes.jsonl``, a line for each cell. nbval 0.11 waits out its time limit for a kernel that is dead, expects all
cells behind one that took too long to fail, and takes orders from comments in a cell. None of that may decide a
grade: a dead kernel is noticed and started again, each cell is run, and which cells are compared is in the job.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from queue import Empty
from typing import Any

import pytest

OUTPUT_BYTES = 1 << 20  # of one cell; more is dropped
OUTPUT_SECONDS = 3  # to come after the reply, or after an interrupt
RESTARTS = 8


class KernelDied(Exception):
    """The kernel ended while a cell ran."""


class Grading:
    """A pytest plugin that runs the cells of a job. job: seconds, cells with id and role, as ``session`` writes it."""

    def __init__(self, folder: Path, job: dict[str, Any]) -> None:
        self.outcomes = folder / "outcomes.jsonl"
        self.roles: dict[str, str] = {cell["id"]: cell["role"] for cell in job["cells"]}
        self.seconds: float = job["seconds"]
        self.done: list[str] = []  # sources that a new kernel has to run before it can go on
        self.restarts = 0

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Say which cells are compared, whatever their comments and tags say."""
        for item in items:
            item.options = defaultdict(bool, check=self.roles[item.cell.id].startswith("check:"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: Any) -> None:
        """Forget that an earlier cell took too long."""
        item.parent.timed_out = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: Any) -> None:
        """See to it that there is a kernel that runs, and that its death is noticed."""
        notebook = item.parent
        item.output_timeout = OUTPUT_SECONDS
        if not notebook.kernel.is_alive():
            if self.restarts >= RESTARTS:
                raise KernelDied("the kernel died too often")
            self.restarts += 1
            notebook.setup()
            self.watch(notebook)
            for source in self.done:
                message = notebook.kernel.execute_cell_input(source, allow_stdin=False)
                notebook.kernel.await_reply(message, timeout=self.seconds)
                notebook.kernel.await_idle(message, timeout=self.seconds)
        elif not hasattr(notebook, "kernel_messages"):
            self.watch(notebook)
        notebook.output_bytes = 0

    def watch(self, notebook: Any) -> None:
        """Make waiting for the kernel end with its life, and drop output beyond measure."""
        kernel = notebook.kernel
        wait, receive = kernel.await_reply, kernel.get_message
        notebook.kernel_messages = receive

        def await_reply(message: str, timeout: float | None = None) -> None:
            until = time.monotonic() + (self.seconds if timeout is None else timeout)
            while True:
                try:
                    return wait(message, timeout=0.5)
                except Empty:
                    if not kernel.is_alive():
                        raise KernelDied("the kernel died") from None
                    if time.monotonic() > until:
                        raise

        def get_message(stream: str, timeout: float | None = None) -> Any:
            message = receive(stream, timeout)
            if message["msg_type"] == "stream":
                notebook.output_bytes = getattr(notebook, "output_bytes", 0) + len(message["content"]["text"])
                if notebook.output_bytes > OUTPUT_BYTES:
                    message["content"]["text"] = ""
            return message

        kernel.await_reply, kernel.get_message = await_reply, get_message

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        """Write down what became of a cell."""
        report = yield
        if report.when == "call" or report.failed:
            error = next((out for out in item.test_outputs or [] if out.output_type == "error"), None)
            raised = call.excinfo.value if call.excinfo else None
            died = isinstance(raised, KernelDied) or "Failed to interrupt" in str(raised)
            line = {
                "id": item.cell.id,
                "passed": report.passed,
                "died": died,
                "why": "" if raised is None else str(raised),
                "error": f"{error['ename']}: {error['evalue']}" if error else "",
                "seconds": round(report.duration, 3),
            }
            with self.outcomes.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            if not died and not self.roles[item.cell.id].startswith("check:"):
                self.done.append(item.cell.source)
        return report


def main(folder: Path) -> int:
    """Run the job in ``folder``. Returns pytest's exit code."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    limit_memory(job["memory_bytes"])
    options = [
        "--nbval-lax",
        "--nbval-current-env",  # this interpreter, whatever kernels the user has installed
        f"--nbval-cell-timeout={job['seconds']}",
        "--nbval-kernel-startup-timeout=60",
        "--quiet",
        "--color=no",
        "-p", "nbval.plugin",  # plugins are not looked for, which takes time
        "-p", "no:cacheprovider",
        "-c", str(folder / "pytest.ini"),
        f"--rootdir={folder}",
        str(folder / "graded.ipynb"),
    ]  # fmt: skip
    return int(pytest.main(options, plugins=[Grading(folder, job)]))


def limit_memory(limit_bytes: int) -> None:
    """Hold this process and its kernels to so much memory each, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for what, limit in ((resource.RLIMIT_DATA, limit_bytes), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(what)[1]
        soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        try:
            resource.setrlimit(what, (soft, hard))
        except (ValueError, OSError):  # macOS knows the names only
            continue


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
