"""Tells whether the memory that a graph reads from outside still has an owner: ``check_input_liveness=True``.

A graph knows addresses and keeps nothing alive. Free a tensor that it reads, and a GPU's replay reads whatever the
allocator put there next, without an error.
"""

from __future__ import annotations

import ctypes
import traceback
import weakref
from dataclasses import dataclass, field
from textwrap import indent

import torch
from torch import Tensor

from onelaunch.tape import Buffer
from onelaunch.tape.source import Source, name_of_memory, user_frame, user_line

_SHOWN = 5


@dataclass(eq=False)
class OutsideInput:
    """Memory that was there before the capture.

    name: what your code called it, or None. where, used: line and traceback of its first use in the capture. freed:
    traceback of its end, None while it lives.
    """

    buffer: Buffer
    name: str | None
    where: Source
    used: str = field(repr=False)
    storage: weakref.ref[torch.UntypedStorage] | None = field(default=None, repr=False)
    freed: str | None = field(default=None, repr=False)

    @property
    def alive(self) -> bool:
        storage = self.storage() if self.storage is not None else None
        return storage is not None and storage.data_ptr() == self.buffer.address

    def __str__(self) -> str:
        shape = f"{str(self.buffer.dtype).removeprefix('torch.')}{list(self.buffer.size)}"
        subject = f"'{self.name}' ({shape})" if self.name else f"a tensor {shape}"
        return f"{subject}, first used at {self.where} (data_ptr={self.buffer.address:#x})"


class InputLiveness:
    """Watches the memory that one graph found outside."""

    def __init__(self) -> None:
        self.inputs: list[OutsideInput] = []

    def meet(self, buffer: Buffer, tensor: Tensor) -> None:
        """Watch memory that the step has just used for the first time. Empty tensors have none."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() == 0:
            return
        found = OutsideInput(buffer, name_of_memory(storage), user_line(), _stack())

        def freed(_: weakref.ref[torch.UntypedStorage]) -> None:
            found.freed = _stack()

        found.storage = weakref.ref(storage, freed)
        self.inputs.append(found)

    def let_go(self) -> None:
        """Let the tape hold the bare addresses of what is watched, so that it is not the tape that keeps it alive."""
        self.inputs = [found for found in self.inputs if found.buffer.kind != "constant"]
        for found in self.inputs:
            found.buffer.storage = _unowned(found.buffer.address, found.buffer.nbytes)

    def check(self) -> None:
        """Raise RuntimeError if any of the memory has no owner any more."""
        dead = [found for found in self.inputs if not found.alive]
        if not dead:
            return
        parts = [f"CUDA graph replay detected {len(dead)} dead tensor(s)."]
        for number, found in enumerate(dead[:_SHOWN], 1):
            parts.append(f"Dead tensor #{number}: {found}")
            parts.append(f"  First used (Python):\n{found.used}")
            if found.freed is not None:
                parts.append(f"  Deletion Traceback (Python):\n{found.freed}")
        if len(dead) > _SHOWN:
            parts.append(f"... and {len(dead) - _SHOWN} more")
        parts.append(f"Replay Traceback (Python):\n{_stack()}")
        parts.append("Keep what a graph reads for as long as you replay it, and refill it with copy_().")
        raise RuntimeError("\n".join(parts))


def _unowned(address: int, nbytes: int) -> torch.UntypedStorage:
    return torch.frombuffer((ctypes.c_uint8 * nbytes).from_address(address), dtype=torch.uint8).untyped_storage()


def _stack() -> str:
    return indent("".join(traceback.format_stack(user_frame())).rstrip(), "    ")
