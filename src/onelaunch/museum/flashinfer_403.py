"""A function that changes its arguments is left out of the graph."""

from __future__ import annotations

from collections.abc import Callable

import torch

from onelaunch import emulator as cuda
from onelaunch.museum.base import Case, Exhibit


def build(in_place: bool) -> Case:
    q, angle = torch.zeros(2), torch.tensor([2.0, 3.0])

    def prepare(i: int) -> None:
        q.fill_(1.0 + i)

    def rotate() -> torch.Tensor:
        return q.mul_(angle) if in_place else q * angle

    def skipping(function: Callable[[], torch.Tensor]) -> torch.Tensor:
        if not in_place:
            return function()
        with cuda.stream(cuda.default_stream()):  # no graph for this one
            return function()

    def step() -> torch.Tensor:
        return skipping(rotate) + 1

    return Case(prepare, step, owners={"q": q, "angle": angle})


def broken() -> Case:
    return build(in_place=True)


def mended() -> Case:
    return build(in_place=False)


EXHIBIT = Exhibit(
    key="flashinfer-403",
    title="Skipped because it mutates its input",
    topic="silent eager",
    reports=("flashinfer-ai/flashinfer#403", "pytorch/pytorch#124506"),
    seen="torch.compile was asked for graphs and skipped them 'due to mutated inputs', as the rotation of the positions works "
    "in place. The program ran as before, eagerly. Here a piece is skipped that way inside of a capture of your own.",
    mend="The variant that returns a new tensor; and a test that counts the kernels of the graph.",
    silent=True,
    findings=(("silent-eager", None),),
    broken=broken,
    mended=mended,
)
