"""The random generators that a capture may draw from: known, never seeded by the step, and afterwards as before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily

from onelaunch.tape.rules import CaptureError
from onelaunch.tape.tape import leaves

if TYPE_CHECKING:
    from torch._ops import OpOverload


class Generators:
    """PyTorch's default generator and those that were registered."""

    def __init__(self, registered: Iterable[torch.Generator] = ()) -> None:
        self._generators = {key_of(g): g for g in (torch.default_generator, *registered)}
        self._states: dict[int, Tensor] = {}  # before the capture
        self._drawn: dict[int, Tensor] = {}  # after the last random operation
        self._seeds: dict[int, int] = {}

    def __contains__(self, generator: torch.Generator) -> bool:
        return key_of(generator) in self._generators

    def __iter__(self) -> Iterator[torch.Generator]:
        return iter(self._generators.values())

    def start(self) -> None:
        """Remember where they stand."""
        for key, generator in self._generators.items():
            self._states[key] = self._drawn[key] = generator.get_state()
            self._seeds[key] = generator.initial_seed()

    def restore(self) -> None:
        """Set them back to where they stood."""
        with unset_fake_temporarily():
            for key, state in self._states.items():
                self._generators[key].set_state(state)

    def check_use(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise CaptureError if a random operation draws from a generator that was not registered."""
        used = [leaf for leaf in leaves((args, list(kwargs.values()))) if isinstance(leaf, torch.Generator)]
        if any(generator not in self for generator in used):
            raise CaptureError("unregistered-rng", op.name())

    def check_seeds(self) -> None:
        """Raise CaptureError if the host has set a generator since the last random operation: a replay would not."""
        for key, generator in self._generators.items():
            with unset_fake_temporarily():
                if torch.equal(generator.get_state(), self._drawn[key]):
                    continue
                if generator.initial_seed() != self._seeds[key]:
                    raise CaptureError("reseeded-rng", "manual_seed()")
                fresh = torch.Generator().manual_seed(self._seeds[key])
                if not torch.equal(generator.get_state(), fresh.get_state()):
                    raise CaptureError("not-emulated", "set_state()", detail="a generator was set back")

    def note_drawn(self) -> None:
        """A random operation has just run."""
        with unset_fake_temporarily():
            self._drawn = {key: generator.get_state() for key, generator in self._generators.items()}


def key_of(generator: torch.Generator) -> int:
    """Identity of a generator: the objects that arrive with an operation are only wrappers."""
    return int(generator._cdata)  # type: ignore[attr-defined]  # missing in the stubs
