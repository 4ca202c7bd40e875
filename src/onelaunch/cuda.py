"""The graph API of ``torch.cuda`` on whatever machine this is: real where there is a GPU, emulated where not.

The names are those of ``onelaunch.emulator``, and ``is_emulated``.
"""

from __future__ import annotations

import torch

from onelaunch import emulator
from onelaunch.emulator import *  # noqa: F403

__all__ = ["is_emulated"]
__all__ += emulator.__all__

is_emulated = not torch.cuda.is_available()

if not is_emulated:
    globals().update({name: getattr(torch.cuda, name) for name in emulator.__all__})
