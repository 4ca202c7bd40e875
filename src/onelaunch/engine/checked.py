"""``LLM(sanitize=True)``: each decode step that is about to be replayed is run eagerly too, on the batch itself.

The graph reads the fixed buffers, the eager run reads the batch. What differs between the two is what was not copied,
or what moved since the capture, and it is named before the wrong tokens are made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onelaunch.engine.core import Batch
from onelaunch.sanitizer import FindingsError, Report, causes, outcome
from onelaunch.sanitizer.differences import compare
from onelaunch.sanitizer.owners import Names, Root, names
from onelaunch.sanitizer.playback import Playback
from onelaunch.sanitizer.recording import Recording, run_eagerly
from onelaunch.tape import Tape


class StepChecker:
    """Checks the replays of one runner. owners: what the graphs read, as it lay when they were recorded. steps: how
    many were checked."""

    def __init__(self, owners: Callable[[], list[Any]]) -> None:
        self.steps = 0
        self._owners = owners
        self._before = self._names()

    def check(self, batch: Batch, tape: Tape, step: Callable[[Batch], None]) -> None:
        """Compare the graph's recording with ``step(batch)``, whose effects are taken back. The buffers are filled.

        Raises FindingsError where the replay would compute something else.
        """
        eager = run_eagerly(lambda: step(batch), ())
        recorded = Recording(outputs=[None])  # which is what a step returns
        recorded.tape = tape
        playback = Playback(tape, watch=False)
        self.steps += 1
        evidence = causes.Evidence(recorded, eager, playback, self._before, Names(), self.steps, wrong=True)
        suspects = [d for d in compare(recorded, eager) if not causes.harmless(d, evidence)]
        if not suspects:
            return
        replay = outcome.of_replay(playback, recorded.outputs)
        if outcome.differ(outcome.of_eager(eager), replay) is None:
            return
        evidence.now = self._names(batch)
        found = [finding for d in suspects if (finding := causes.of_difference(d, evidence)) is not None]
        report = Report(causes.merged(found), 1, len(tape.kernels))
        what = f"decode step {self.steps} ({batch.size} requests as {batch.padded_size}) would be replayed wrongly"
        raise FindingsError(what, report)

    def _names(self, batch: Batch | None = None) -> Names:
        start = [Root("", owner, declared=True) for owner in self._owners()]
        if batch is not None:
            start.append(Root("batch", batch, declared=False))
        return names(start)
