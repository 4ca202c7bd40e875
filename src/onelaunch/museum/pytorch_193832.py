"""A workspace belongs to a stream, and the capture has one of its own."""

from __future__ import annotations

import torch

from onelaunch import emulator as cuda
from onelaunch.museum.base import Case, Exhibit


def build(by_stream: bool) -> Case:
    x = torch.zeros(2)
    workspaces = {"default": torch.zeros(2)}

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def workspace() -> torch.Tensor:
        on_its_own = by_stream and cuda.is_current_stream_capturing()
        stream = "capture" if on_its_own else "default"
        if stream not in workspaces:
            workspaces[stream] = torch.zeros(2)
        return workspaces[stream]

    def step() -> torch.Tensor:
        return x * 2 + workspace()

    return Case(prepare, step, owners={"x": x, "workspaces": workspaces})


def broken() -> Case:
    return build(by_stream=True)


def mended() -> Case:
    return build(by_stream=False)


EXHIBIT = Exhibit(
    key="pytorch-193832",
    title="The workspace is stuck in the pool",
    topic="warm-up missing",
    reports=("pytorch/pytorch#193832", "pytorch/pytorch#193402"),
    seen="cuBLAS gets a workspace for each stream. The first product on the capture's stream makes one, in the graph's "
    "memory, and it stays there after the graph is gone; or it goes, and another graph still uses it.",
    mend="Make the workspace before the capture and hand it to whoever needs one, on any stream.",
    silent=True,
    findings=(("lazy-init-recorded", "workspaces.capture"),),
    broken=broken,
    mended=mended,
)
