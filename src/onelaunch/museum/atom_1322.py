"""The end of a kernel unloads its module, and the collector chooses when that is."""

from __future__ import annotations

import contextlib
import gc

import torch

from onelaunch import emulator as cuda
from onelaunch.museum.base import Case, Exhibit


class Kernel:
    def __init__(self) -> None:
        self.me = self  # a cycle: only the collector ends it

    def __del__(self) -> None:
        with contextlib.suppress(RuntimeError):  # nobody looks here
            cuda.synchronize()  # for the unloading of a module


def build(collect: bool) -> Case:
    x = torch.zeros(2)

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)
        if i == 1 and not collect:
            gc.collect()  # the capture has ended

    def step() -> torch.Tensor:
        y = x * 2
        if cuda.is_current_stream_capturing():
            Kernel()  # the tuner tries it, and drops it
            if collect:
                gc.collect()  # its turn happens to be now
        return y + 1

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(collect=True)


def mended() -> Case:
    return build(collect=False)


EXHIBIT = Exhibit(
    key="atom-1322",
    title="A dropped kernel unloads its module",
    topic="allocator or garbage collector",
    reports=("ROCm/ATOM#1322", "vllm-project/vllm#54646", "NVIDIA/warp#401"),
    seen="A tuner dropped compiled kernels while a graph was captured. A collection in the middle of it finalized them, "
    "which unloads modules of the GPU; that is forbidden there, and the capture was lost. There are no modules on a CPU: "
    "here the finalizer makes another call that a capture forbids.",
    mend="Keep the collector off from before the capture until after it.",
    silent=False,
    findings=(("host-sync", None),),
    broken=broken,
    mended=mended,
)
