"""Whether live rows depend on what padding holds: fill it with other things, replay, and see what changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from onelaunch.sanitizer.outcome import Mask, Outcome, differ, of_replay, same
from onelaunch.sanitizer.owners import Names, span
from onelaunch.sanitizer.playback import Playback
from onelaunch.sanitizer.report import Finding
from onelaunch.tape import Kernel, TensorRef
from onelaunch.tape.replay import plain_modes
from onelaunch.tape.tape import alias
from onelaunch.tape.undo import Piece

_FEW = 4  # live values that are tried as other valid indices


@dataclass(frozen=True, eq=False)
class Padding:
    """One view that was declared. whole: the tensor that it is part of. rows: for a dimension of a certain size of that
    tensor, which of its places are padding. values: what else may stand there, in words and to be filled in; where
    nobody said so, ``poisons`` knows."""

    view: Tensor
    whole: Tensor
    rows: dict[int, Tensor]
    values: tuple[tuple[str, Any], ...] | None = None


def declared(views: Any) -> list[Padding]:
    """What ``padding(i)`` returned. Raises TypeError for what is no view of a tensor."""
    if not isinstance(views, (Tensor, Iterable)):
        raise TypeError(f"padding must return views of tensors, in a list; found {type(views).__name__}.")
    views = [views] if isinstance(views, Tensor) else list(views.values() if isinstance(views, dict) else views)
    found = []
    for view in views:
        if not isinstance(view, Tensor):
            raise TypeError(f"padding must return views of tensors, in a list; found {type(view).__name__}.")
        if view.numel() == 0:
            continue
        whole = view._base if view._base is not None else view
        found.append(Padding(plain(view), plain(whole), _rows(view, whole)))
    return found


def plain(tensor: Tensor) -> Tensor:
    """The same memory without history, writable in every mode."""
    ref = TensorRef(
        0, tensor.dtype, tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()), False, tensor.is_neg()
    )
    return alias(tensor.untyped_storage(), tensor.dtype, ref.offset, ref)


def _rows(view: Tensor, whole: Tensor) -> dict[int, Tensor]:
    """By the size of a dimension of ``whole``: its places of which nothing is live."""
    if view is whole or whole.layout is not torch.strided:
        return {}
    mark = torch.zeros(whole.untyped_storage().nbytes() // whole.element_size(), dtype=torch.bool)
    torch.as_strided(mark, view.shape, view.stride(), int(view.storage_offset())).fill_(True)
    marked = torch.as_strided(mark, whole.shape, whole.stride(), int(whole.storage_offset()))
    rows = {}
    for dim in range(whole.dim()):
        all_padding = marked.transpose(0, dim).reshape(whole.shape[dim], -1).all(1)
        if all_padding.any() and not all_padding.all():
            rows[int(whole.shape[dim])] = all_padding
    return rows


def without(rows: dict[int, Tensor], flattened: bool = False) -> Mask:
    """Takes the live rows of a result: in its first dimension of a size that the padded tensors have.

    flattened: where there is none, in its first dimension that such rows were flattened into, to all appearance.
    """

    def live(tensor: Tensor) -> Tensor:
        for dim, size in enumerate(tensor.shape):
            if size in rows:
                return tensor.index_select(dim, (~rows[size]).nonzero().flatten())
        for dim, size in enumerate(tensor.shape if flattened else ()):
            for padded, places in rows.items():
                if size > padded and size % padded == 0:
                    return tensor.index_select(dim, (~places.repeat_interleave(size // padded)).nonzero().flatten())
        return tensor

    return live


def poisons(padding: Padding) -> Iterator[tuple[str, Any]]:
    """What to fill a view with: in words, and a value."""
    dtype = padding.view.dtype
    if padding.values is not None:
        yield from padding.values
    elif dtype is torch.bool:
        yield from (("True", True), ("False", False))
    elif dtype.is_floating_point or dtype.is_complex:
        largest = torch.finfo(dtype).max
        yield from (("NaN", torch.nan), (f"{largest:.3g}", largest), (f"{-largest:.3g}", -largest))
    else:
        known = padding.whole.unique()
        for value in [*known[: _FEW // 2].tolist(), *known[-(_FEW // 2) :].tolist()]:
            yield f"{value} (an index that is valid elsewhere)", value
        info = torch.iinfo(dtype)
        yield from ((str(info.max), info.max), (str(info.min), info.min))


def leaks(
    playback: Playback,
    outputs: Iterable[Any],
    views: list[Padding],
    names: Names,
    generators: Iterable[torch.Generator],
    number: int,
) -> list[Finding]:
    """The findings of one round. Memory is as before the replay when this is called and when it returns."""
    trial = Trial(playback, outputs, views, generators)
    by_line: dict[tuple[str, int], list[tuple[Kernel, Filled, Piece | int]]] = {}
    for padding in views:
        for words, value in poisons(padding):
            filled = [(padding, words, value)]
            where = trial.changed(filled)
            if where is not None:
                kernel = trial.culprit(filled)
                by_line.setdefault(kernel.where[:2], []).append((kernel, filled, where))
                break
    return [
        finding(filled, where, kernel, names, number, [one for _, other, _ in more for one in other])
        for (kernel, filled, where), *more in by_line.values()
    ]


Filled = Sequence[tuple[Padding, str, Any]]  # views, and what to fill them with: in words, and the value


class Trial:
    """Replays from one state, with this or that in the padding. right: what is left behind by a run on the padding as
    it is; where None, a replay finds out."""

    def __init__(
        self,
        playback: Playback,
        outputs: Iterable[Any],
        views: list[Padding],
        generators: Iterable[torch.Generator] = (),
        right: Outcome | None = None,
    ) -> None:
        self.playback, self.outputs = playback, list(outputs)
        self.generators = list(generators)
        self._states = [generator.get_state() for generator in self.generators]
        self.memory = [padding.view for padding in views]
        rows: dict[int, Tensor] = {}
        for padding in views:
            for size, places in padding.rows.items():
                rows[size] = rows[size] & places if size in rows else places
        self.live, self._traced = without(rows), without(rows, flattened=True)
        self.right = self._replay() if right is None else right

    def changed(self, filled: Filled) -> Piece | int | None:
        """The first live part of the outcome that ``filled`` changes, or None."""
        with _holding(filled):  # the comparison too, because it puts back what padding held when it was written
            poisoned = self._replay()
            if self.playback.failed is not None:  # an index out of bounds, which padding need not stand
                return None
            return differ(self.right, poisoned, self.memory, self.live)

    def fewest(self, filled: Filled) -> Filled:
        """Of values that change something together, those without which they do not."""
        needed = list(filled)
        for item in filled:
            rest = [other for other in needed if other is not item]
            if rest and self.changed(rest) is not None:
                needed = rest
        return needed

    def culprit(self, filled: Filled) -> Kernel:
        """The first kernel whose live results ``filled`` changes."""
        before = self._trace()
        with _holding(filled):
            after = self._trace()
        return _first(self.playback, before, after)

    def _replay(self) -> Outcome:
        self._seed()
        return of_replay(self.playback, self.outputs)

    def _trace(self) -> list[list[Tensor]]:
        self._seed()
        seen: list[list[Tensor]] = []
        journal = self.playback.run(lambda kernel: seen.append(_live_results(kernel, self.playback, self._traced)))
        journal.restore()
        return seen

    def _seed(self) -> None:
        for generator, state in zip(self.generators, self._states, strict=True):
            generator.set_state(state)


@contextmanager
def _holding(filled: Filled) -> Iterator[None]:
    """Let padding hold something else for the length of a ``with``."""
    saved = [padding.view.clone() for padding, _, _ in filled]
    try:
        for padding, _, value in filled:
            _fill(padding.view, value)
        yield
    finally:
        for (padding, _, _), content in zip(filled, saved, strict=True):
            _fill(padding.view, content)


def _fill(view: Tensor, value: Any) -> None:
    with plain_modes():
        if isinstance(value, Tensor):
            view.copy_(value)
        else:
            view.fill_(value)


def _live_results(kernel: Kernel, playback: Playback, live: Mask) -> list[Tensor]:
    own = [ref for ref in kernel.writes if not playback.tape.buffers[ref.buffer].outside]
    return [live(playback.tensor(ref)).clone() for ref in own]


def _first(playback: Playback, before: list[list[Tensor]], after: list[list[Tensor]]) -> Kernel:
    """The first kernel whose live results are others, or the last that writes outside where all are the same."""
    for kernel, a, b in zip(playback.tape.kernels, before, after, strict=False):
        if any(not same(x, y) for x, y in zip(a, b, strict=True)):
            return kernel
    writers = [k for k in playback.tape.kernels if any(playback.tape.buffers[ref.buffer].outside for ref in k.writes)]
    return (writers or playback.tape.kernels)[-1]


def finding(
    filled: Filled, where: Piece | int, kernel: Kernel, names: Names, number: int, others: Filled = ()
) -> Finding:
    """That ``filled`` changes ``where``, by way of ``kernel``, in round ``number``. others: what else gets there."""
    called = [_name(padding, names) for padding, _, _ in filled]
    holds = " and ".join(
        f"{words} in the padding of {name or 'a tensor'}" for (_, words, _), name in zip(filled, called, strict=True)
    )
    changed = f"output {where} changes" if isinstance(where, int) else "memory outside of the padding changes"
    if isinstance(where, Piece):
        owner = names.of(*_memory(where))
        changed = f"{owner.path} changes outside of its padding" if owner is not None and owner.path else changed
    also = sorted({name for padding, _, _ in others if (name := _name(padding, names)) is not None} - {*called})
    why = f"with {holds} in round {number}, {changed}; the first live result that does is that of {kernel.name}" + (
        f" (what the padding of {', '.join(also)} holds gets there too)" if also else ""
    )
    return Finding(
        "padding-leak",
        called[0],
        kernel.where,
        why,
        "Keep padding apart: mask it before rows meet (torch.where, not a product with zero: zero times NaN is NaN), "
        "and let padded rows write to memory that nobody reads.",
    )


def _name(padding: Padding, names: Names) -> str | None:
    place = names.of(*span(padding.view))
    return place.path if place is not None and place.path else None


def _memory(piece: Piece) -> tuple[int, int]:
    read: Callable[[], Tensor] = piece.read
    owner = getattr(getattr(read, "func", read), "__self__", None)
    return span(owner if isinstance(owner, Tensor) else getattr(read, "args")[0])  # noqa: B009
