"""Work on a side stream is never joined."""

from __future__ import annotations

import torch

from onelaunch import emulator as cuda
from onelaunch.museum.base import Case, Exhibit


def build(join: bool) -> Case:
    x, out, side = torch.zeros(2), torch.zeros(2), cuda.Stream()

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        main = cuda.current_stream()
        side.wait_stream(main)
        with cuda.stream(side):
            out.copy_(x * 2)
        if join:
            main.wait_stream(side)
        return x + 1

    def read(y: torch.Tensor) -> list[torch.Tensor]:
        return [y, out]

    return Case(prepare, step, owners={"x": x, "out": out}, read=read)


def broken() -> Case:
    return build(join=False)


def mended() -> Case:
    return build(join=True)


EXHIBIT = Exhibit(
    key="deepep-62",
    title="A stream that nobody waits for",
    topic="stream, thread or device",
    reports=("deepseek-ai/DeepEP#62",),
    seen="Capturing a model with expert-parallel communication ended with 'capturing stream has unjoined work'.",
    mend="The capture's stream waits for every stream that it started.",
    silent=False,
    findings=(("unjoined-stream", None),),
    broken=broken,
    mended=mended,
)
