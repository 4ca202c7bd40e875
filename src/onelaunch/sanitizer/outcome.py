"""What a run left behind: its outputs and the memory outside that it wrote, to be laid beside another run's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from onelaunch.sanitizer.playback import Playback
from onelaunch.sanitizer.recording import Recording
from onelaunch.tape import TensorRef
from onelaunch.tape.tape import leaves
from onelaunch.tape.undo import Piece

Mask = Callable[[Tensor], Tensor]  # a tensor without the part that does not count


@dataclass(eq=False)
class Outcome:
    """One run from a certain state. outputs: their content; pieces, after: memory outside, and what it held then."""

    outputs: list[Any]
    pieces: list[Piece]
    after: list[Tensor]

    def undo(self) -> None:
        """Put the memory outside back to what it was before the run."""
        with torch.no_grad():
            for piece in reversed(self.pieces):
                piece.write(piece.saved)

    def redo(self) -> None:
        """Bring the memory outside to what it was after the run."""
        with torch.no_grad():
            for piece, value in zip(self.pieces, self.after, strict=True):
                piece.write(value)


def of_eager(recording: Recording) -> Outcome:
    """What an eager run would have left; it is undone already."""
    return Outcome(recording.results, recording.pieces, recording.after)


def of_replay(playback: Playback, outputs: Iterable[TensorRef | Any]) -> Outcome:
    """Replay and take it back. In the pool the results stay."""
    journal = playback.run()
    content = [playback.tensor(out).clone() if isinstance(out, TensorRef) else out for out in outputs]
    outcome = Outcome(content, list(journal.pieces), journal.values())
    outcome.undo()
    return outcome


def differ(a: Outcome, b: Outcome, padding: Iterable[Tensor] = (), live: Mask | None = None) -> Piece | int | None:
    """The first output (its number) or piece of memory in which two runs from the same state differ, or None.

    The memory has to be in that state. padding: memory that does not count. live: takes from an output, or from memory
    that was written as a whole, what counts.
    """
    keep: Mask = live if live is not None else (lambda tensor: tensor)
    if len(a.outputs) != len(b.outputs):
        return 0
    for n, (x, y) in enumerate(zip(a.outputs, b.outputs, strict=True)):
        if isinstance(x, Tensor) and isinstance(y, Tensor):
            if x.shape != y.shape or not same(keep(x), keep(y)):
                return n
        elif not _equal(x, y):
            return n
    blank, pieces = list(padding), [*a.pieces, *b.pieces]
    for piece, x, y in zip(pieces, _seen(a, pieces, blank), _seen(b, pieces, blank), strict=True):
        if not (same(x, y) if piece.rows else same(keep(x), keep(y))):
            return piece
    return None


def _seen(run: Outcome, pieces: list[Piece], padding: list[Tensor]) -> list[Tensor]:
    """What ``pieces`` hold after ``run``, with the padding blanked out."""
    run.redo()
    with torch.no_grad():
        saved = [view.clone() for view in padding]
        for view in padding:
            view.zero_()
        values = [piece.read() for piece in pieces]
        for view, value in zip(padding, saved, strict=True):
            view.copy_(value)
    run.undo()
    return values


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same numbers; NaN is NaN."""
    if a.shape != b.shape or a.dtype is not b.dtype:
        return False
    if torch.equal(a, b):
        return True
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        return False
    return bool(((a == b) | (a.isnan() & b.isnan())).all())


def _equal(x: Any, y: Any) -> bool:
    try:
        return bool(leaves(x) == leaves(y))
    except Exception:  # what cannot be compared is compared by identity
        return x is y
