"""Which executor plays a tape: the one that you name, or the fastest, found out during the first replays.

All of them issue the same calls and give the same bits, so trying them out is a replay like any other. The environment
variable ``ONELAUNCH_EXECUTOR`` names one: ``auto`` (also if it is not set), ``native``, ``script`` or ``python``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from onelaunch.tape import native
from onelaunch.tape.replay import Executor, PythonExecutor
from onelaunch.tape.script import ScriptExecutor
from onelaunch.tape.tape import Tape

VARIABLE = "ONELAUNCH_EXECUTOR"
TRIES = 3  # of each candidate; the first one of a kind is slow
EXECUTORS: dict[str, Callable[[Tape], Executor]] = {
    "native": native.NativeExecutor,
    "script": ScriptExecutor,
    "python": PythonExecutor,
}


def make_executor(tape: Tape, choice: str | None = None) -> Executor:
    """What plays ``tape``. choice: a name, or "auto"; None reads the environment.

    Raises ValueError for a name that means nothing, ``native.NativeBuildError`` for "native" where it is not compiled,
    RuntimeError for a tape of shapes alone.
    """
    tape.require_memory()
    source = "choice"
    if choice is None:
        choice, source = os.environ.get(VARIABLE) or "auto", VARIABLE
    if choice == "auto":
        return FastestExecutor(tape, [name for name in EXECUTORS if name != "native" or native.is_built()])
    if choice not in EXECUTORS:
        raise ValueError(f"{source}={choice!r} is not an executor; there is auto, {', '.join(EXECUTORS)}.")
    return EXECUTORS[choice](tape)


class FastestExecutor:
    """Plays a tape with each candidate in turn, a few times, and stays with the one that took the least time.

    seconds: the shortest replay of each candidate so far, by name.
    """

    def __init__(self, tape: Tape, candidates: Sequence[str]) -> None:
        self._tape: Tape | None = tape
        self._turns = list(candidates) * TRIES
        self._executors: dict[str, Executor] = {}
        self.seconds: dict[str, float] = {}
        self.chosen: Executor | None = None

    @property
    def name(self) -> str:
        """Name of the chosen executor, or "auto" while the choice is open."""
        return "auto" if self.chosen is None else self.chosen.name

    def run(self) -> None:
        if self.chosen is not None:
            self.chosen.run()
            return
        name = self._turns.pop(0)
        if name not in self._executors:
            assert self._tape is not None
            self._executors[name] = EXECUTORS[name](self._tape)
        start = time.perf_counter()
        self._executors[name].run()
        seconds = time.perf_counter() - start
        self.seconds[name] = min(seconds, self.seconds.get(name, seconds))
        if not self._turns:
            self.chosen = self._executors[min(self.seconds, key=self.seconds.__getitem__)]
            self._executors.clear()
            self._tape = None
