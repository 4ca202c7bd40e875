"""``LLM(sanitize=True)``: each decode step that is about to be replayed is run eagerly too, on the batch itself.

The graph reads the fixed buffers, the eager run reads the batch. What differs between the two is what was not copied,
or what moved since the capture, and it is named before the wrong tokens are made. Then the step is replayed once on
other padding, which no live row may notice. A place of padding has three other values, and a replay for each would make
a step dear: they take turns, one a step in all places at once, and after three steps all were tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onelaunch.engine.core import Batch
from onelaunch.engine.padded import TURNS
from onelaunch.sanitizer import Finding, FindingsError, Report, causes, outcome, poison
from onelaunch.sanitizer.differences import compare
from onelaunch.sanitizer.evidence import Evidence
from onelaunch.sanitizer.owners import Names, Root, names
from onelaunch.sanitizer.playback import Playback
from onelaunch.sanitizer.recording import Recording, run_eagerly
from onelaunch.tape import Tape


class StepChecker:
    """Checks the replays of one runner. owners: what the graphs read, as it lay when they were recorded. padding: of a
    batch whose inputs were copied, and a live row of it. steps: how many were checked."""

    def __init__(
        self, owners: Callable[[], list[Any]], padding: Callable[[Batch, int], list[poison.Padding]] | None = None
    ) -> None:
        self.steps = 0
        self._owners, self._padding = owners, padding
        self._playbacks: dict[Tape, Playback] = {}
        self._before = self._names()

    def check(self, batch: Batch, tape: Tape, step: Callable[[Batch], None]) -> None:
        """Compare the graph's recording with ``step(batch)``, whose effects are taken back. The buffers are filled.

        Raises FindingsError where the replay would compute something else, or where it depends on padding.
        """
        eager = run_eagerly(lambda: step(batch), ())
        recorded = Recording(outputs=[None])  # which is what a step returns
        recorded.tape = tape
        if tape not in self._playbacks:
            self._playbacks[tape] = Playback(tape, watch=False)
        playback = self._playbacks[tape]
        self.steps += 1
        wrong, found = self._differences(recorded, eager, playback, batch)
        said = "would be replayed wrongly"
        if not wrong and self._padding is not None:
            found = self._leaks(eager, playback, batch, self._padding(batch, self.steps % batch.size))
            said = "depends on what its padding holds"
        if wrong or found:
            what = f"decode step {self.steps} ({batch.size} requests as {batch.padded_size}) {said}"
            raise FindingsError(what, Report(causes.merged(found), 1, len(tape.kernels)))

    def forget(self) -> None:
        """Let go of the graphs' memory."""
        self._playbacks.clear()

    def _differences(
        self, recorded: Recording, eager: Recording, playback: Playback, batch: Batch
    ) -> tuple[bool, list[Finding]]:
        """Whether a replay would leave other values behind than eager, and why."""
        evidence = Evidence(recorded, eager, playback, self._before, Names(), self.steps, wrong=True)
        suspects = [d for d in compare(recorded, eager) if not evidence.harmless(d)]
        if not suspects:
            return False, []
        replay = outcome.of_replay(playback, recorded.outputs)
        if outcome.differ(outcome.of_eager(eager), replay) is None:
            return False, []
        evidence.now = self._names(batch)
        return True, [finding for d in suspects if (finding := causes.of_difference(d, evidence)) is not None]

    def _leaks(self, eager: Recording, playback: Playback, batch: Batch, views: list[poison.Padding]) -> list[Finding]:
        """What of the padding reaches anything live. One replay tries this step's value of every place at once."""
        filled = [(padding, *list(poison.poisons(padding))[(self.steps - 1) % TURNS]) for padding in views]
        # Where nothing differs, eager left behind what a replay on the padding as it is would.
        right = outcome.of_eager(eager)
        if poison.Trial(playback, right.outputs, views, right=right).changed(filled) is None:
            return []
        now = self._names(batch)
        found = poison.leaks(playback, right.outputs, views, now, (), self.steps)
        if not found:  # no place does it alone
            trial = poison.Trial(playback, right.outputs, views)
            # Of values that leak together the one is content and the other the way to it: the content comes first.
            needed = sorted(trial.fewest(filled), key=lambda item: not item[0].view.is_floating_point())
            where = trial.changed(needed)
            if where is not None:
                found = [poison.finding(needed, where, trial.culprit(needed), now, self.steps)]
        return found

    def _names(self, batch: Batch | None = None) -> Names:
        start = [Root("", owner, declared=True) for owner in self._owners()]
        if batch is not None:
            start.append(Root("batch", batch, declared=False))
        return names(start)
