"""What a difference between two recordings is judged by, and the questions that a judge asks of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from onelaunch.sanitizer.differences import Difference
from onelaunch.sanitizer.outcome import same
from onelaunch.sanitizer.owners import Names, Place
from onelaunch.sanitizer.playback import Playback
from onelaunch.sanitizer.recording import Recording
from onelaunch.tape import Buffer, TensorRef
from onelaunch.tape.source import Source


@dataclass
class Evidence:
    """The two recordings, and what things were called then and are called now.

    round: number of the round. wrong: whether the replay's results differ from eager's. first: the first kernel that
    computed something else, in words.
    """

    recorded: Recording
    eager: Recording
    playback: Playback
    before: Names
    now: Names
    round: int
    wrong: bool
    first: str = ""

    def buffer(self, ref: TensorRef) -> Buffer:
        """The memory behind a reference of the first recording."""
        return self.recorded.tape.buffers[ref.buffer]

    def first_use(self, buffer: Buffer) -> Source:
        """The line that used recorded memory first."""
        return self.recorded.tape.kernels[buffer.first_use or 0].where

    def maker(self, ref: object) -> Source | None:
        """The line that first wrote a result of the recorded step."""
        if isinstance(ref, TensorRef):
            for kernel in self.recorded.tape.kernels:
                if any(written.buffer == ref.buffer for written in kernel.writes):
                    return kernel.where
        return None

    def local_name(self, ref: TensorRef) -> str | None:
        """What the step's own variables called recorded memory."""
        return self.recorded.local_names.get(self.buffer(ref).address)

    def contents(self, d: Difference) -> tuple[Tensor, Tensor] | None:
        """What the memory of a difference holds, as the graph sees it and as eager does; None where that cannot be
        compared."""
        if not isinstance(d.was, TensorRef) or not isinstance(d.now, TensorRef) or d.was.size != d.now.size:
            return None
        was, now = self.playback.tensor(d.was), self.eager.tape.tensor(d.now)
        comparable = was.dtype is now.dtype and was.layout is now.layout is torch.strided
        return (was, now) if comparable else None

    def harmless(self, d: Difference) -> bool:
        """Whether a difference is one of memory alone, which holds the same here and there."""
        contents = self.contents(d) if d.what == "memory" and not d.written else None
        return contents is not None and same(*contents)

    def differing_rows(self, d: Difference) -> str:
        """In which rows the memory of a difference holds something else, in brackets; "" where in all."""
        contents = self.contents(d)
        if contents is None or contents[0].dim() == 0 or d.written:
            return ""
        a, b = contents
        unequal = (a != b).reshape(a.shape[0], -1).any(1)
        if unequal.all():
            return ""
        rows = unequal.nonzero().flatten().tolist()
        plural = "s" * (len(rows) > 1)
        return f" (row{plural} {', '.join(map(str, rows[:8]))}{' and more' if len(rows) > 8 else ''})"


def addresses(buffer: Buffer, ref: TensorRef | None = None) -> tuple[int, int]:
    """Address of the first byte of memory, or of a view of it, and one past its last."""
    if ref is None:
        return buffer.address, buffer.address + buffer.nbytes
    start, end = ref.span
    return buffer.address + start, buffer.address + end


def place_of(ref: object, recording: Recording, names: Names) -> Place | None:
    """The place with a name that a reference points to."""
    if not isinstance(ref, TensorRef):
        return None
    place = names.of(*addresses(recording.tape.buffers[ref.buffer], ref))
    return place if place is not None and place.path else None
