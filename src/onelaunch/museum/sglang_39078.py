"""A communication buffer is built at the first call, and that is in the capture."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch import emulator as cuda
from onelaunch.museum.base import Case, Exhibit


def build(early: bool) -> Case:
    x, made = torch.zeros(2), SimpleNamespace(buffer=None)

    def connect() -> None:
        cuda.synchronize()  # the ranks meet
        made.buffer = torch.zeros(2)

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)
        if early and made.buffer is None:
            connect()

    def step() -> torch.Tensor:
        if cuda.is_current_stream_capturing() and made.buffer is None:
            connect()
        return x * 2 if made.buffer is None else made.buffer.copy_(x) * 2

    return Case(prepare, step, owners={"x": x, "made": made})


def broken() -> Case:
    return build(early=False)


def mended() -> Case:
    return build(early=True)


EXHIBIT = Exhibit(
    key="sglang-39078",
    title="Connecting in the middle of a capture",
    topic="warm-up missing",
    reports=("sgl-project/sglang#39078", "sgl-project/sglang#33356"),
    seen="A buffer for expert parallelism was made at the first dispatch. For a decoding graph that was inside of the "
    "capture, where it may neither allocate nor wait; the error named the network.",
    mend="Make it when the server starts.",
    silent=False,
    findings=(("host-sync", None), ("lazy-init-recorded", "made.buffer")),
    broken=broken,
    mended=mended,
)
