"""One round: the step eagerly and from the graph, from the same state, and what their difference comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from onelaunch.sanitizer import causes, outcome, poison
from onelaunch.sanitizer.addresses import of_missing
from onelaunch.sanitizer.bindings import Bindings
from onelaunch.sanitizer.differences import compare
from onelaunch.sanitizer.evidence import Evidence
from onelaunch.sanitizer.owners import Root, names
from onelaunch.sanitizer.playback import Playback
from onelaunch.sanitizer.recording import Recording, fingerprint, run_eagerly
from onelaunch.sanitizer.report import Finding
from onelaunch.tape import Buffer
from onelaunch.tape.operators import facts_of

_WATCHED_BYTES = 1 << 20  # larger inputs are not looked at for what the host writes to them behind PyTorch's back


class Round:
    """Round ``number``. The memory is in the state that ``prepare(number)`` left."""

    def __init__(
        self,
        number: int,
        step: Callable[[], Any],
        recorded: Recording,
        playback: Playback,
        before: Any,
        start: list[Root],
        generators: list[torch.Generator],
        handled: set[tuple[object, ...]],
    ) -> None:
        self.number, self.step, self.recorded, self.playback = number, step, recorded, playback
        self.before, self.start, self.handled = before, start, handled
        self.registered = generators
        self.generators = [torch.default_generator, *generators]
        self.names = names(start)

    def check(self, views: Any) -> list[Finding]:
        """Compare, then replay for good. views: what ``padding`` returned."""
        eager, found = self._eagerly()
        differences = [d for d in compare(self.recorded, eager) if d.key not in self.handled]
        self.playback.bind(eager.tape)
        states = [generator.get_state() for generator in self.generators]
        replay = outcome.of_replay(self.playback, self.recorded.outputs)
        failed = self.playback.failed
        wrong = failed is not None or self._wrong(outcome.of_eager(eager), replay, eager)
        if wrong and not differences and not found:
            found += self._reseeded(eager)
        self._set(states)
        evidence = Evidence(self.recorded, eager, self.playback, self.before, self.names, self.number, wrong)
        if wrong and differences:
            evidence.first = self._first(states)
        missing = [b for b in self.recorded.tape.buffers if self.playback.missing(b) and b.first_use is not None]
        found += [of_missing(buffer, evidence) for buffer in missing]
        for difference in differences:
            finding = causes.of_difference(difference, evidence)
            found += [finding] if finding is not None else []
        if padding := poison.declared(views):
            found += poison.leaks(
                self.playback, self.recorded.outputs, padding, self.names, self.generators, self.number
            )
        self._set(states)
        self.playback.run()  # this time its effects stay
        self.playback.release()
        eager.forget()
        return found

    def _eagerly(self) -> tuple[Recording, list[Finding]]:
        """The eager run, and what the host wrote in it without a kernel, which is taken back too."""
        watched = self._watched()
        content = [tensor.clone() for _, tensor in watched]
        bindings = Bindings(self.start)
        found = []
        try:
            eager = run_eagerly(self.step, self.registered)
        finally:
            for (buffer, tensor), saved in zip(watched, content, strict=True):
                if not torch.equal(tensor, saved):
                    tensor.copy_(saved)
                    found.append(self._by_host(buffer))
            bindings.restore()
        return eager, found

    def _watched(self) -> list[tuple[Buffer, Tensor]]:
        found = []
        for buffer in self.recorded.tape.buffers:
            if buffer.kind in ("input", "state") and buffer.nbytes <= _WATCHED_BYTES and buffer.opaque is None:
                storage = self.playback.owned(buffer)
                if storage is not None:
                    tensor = torch.empty(0, dtype=torch.uint8).set_(storage)[buffer.base : buffer.base + buffer.nbytes]
                    found.append((buffer, tensor))
        return found

    def _by_host(self, buffer: Buffer) -> Finding:
        place = self.names.of(buffer.address, buffer.address + buffer.nbytes)
        name = place.path if place is not None else self.recorded.local_names.get(buffer.address)
        kernel = self.recorded.tape.kernels[buffer.first_use or 0]
        why = (
            f"step() changes {name or 'a tensor'} without a kernel, by way of numpy: a replay runs no Python, so the "
            "graph reads what was there before"
        )
        fix = "Write it before each replay, outside of the step, or with a kernel of PyTorch inside it."
        return Finding("stale-input", name, kernel.where, why, fix)

    def _wrong(self, eager: outcome.Outcome, replay: outcome.Outcome, recording: Recording) -> bool:
        if outcome.differ(eager, replay) is not None:
            return True
        after = [generator.get_state() for generator in self.generators]
        return any(not torch.equal(a, b) for a, b in zip(after, recording.states, strict=True))

    def _reseeded(self, eager: Recording) -> list[Finding]:
        """The same kernels on the same memory, and other numbers: the host has set a generator in the step."""
        after = [generator.get_state() for generator in self.generators]
        if all(torch.equal(a, b) for a, b in zip(after, eager.states, strict=True)):
            return []
        random = [kernel for kernel in self.recorded.tape.kernels if facts_of(kernel.op).random]
        if not random:
            return []
        why = (
            f"step() sets the state of a generator before {random[0].name} draws from it: eager starts anew each time, "
            "and a replay, which runs no Python, goes on where the last one ended"
        )
        fix = "Draw once and use it twice, or set the state before a replay, outside of the step."
        return [Finding("unregistered-rng", None, random[0].where, why, fix)]

    def _first(self, states: list[Tensor]) -> str:
        """The first kernel that computes something else than eager, as the end of a sentence."""
        bindings = Bindings(self.start)
        try:
            eager = run_eagerly(self.step, self.registered, prints=True)
        finally:
            bindings.restore()
        prints: list[int] = []
        self._set(states)
        self.playback.run(lambda kernel: prints.append(fingerprint(kernel, self.playback.tensor))).restore()
        self._set(states)
        text = ""
        for kernel, other, a, b in zip(
            self.recorded.tape.kernels, eager.tape.kernels, prints, eager.prints or (), strict=False
        ):
            if a != b or kernel.op is not other.op:
                text = f". The first kernel that differs is number {kernel.index}, {kernel.name}, at {kernel.where}"
                break
        eager.forget()
        return text

    def _set(self, states: list[Tensor]) -> None:
        for generator, state in zip(self.generators, states, strict=True):
            generator.set_state(state)
