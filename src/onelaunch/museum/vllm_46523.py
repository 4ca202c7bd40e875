"""The warm-up ran another function than the capture."""

from __future__ import annotations

import torch

from onelaunch import emulator as cuda
from onelaunch.museum.base import Case, Exhibit


def build(same: bool) -> Case:
    x, tables = torch.zeros(2), {}

    def prepare(i: int) -> None:
        x.copy_(torch.tensor([1.0, 2.0]) + i)

    def step() -> torch.Tensor:
        capturing = cuda.is_current_stream_capturing()
        mode = "full" if capturing and not same else "general"
        if mode not in tables:
            tables[mode] = torch.full((2,), 10.0)  # tuned at the first call
        return x + tables[mode]

    return Case(prepare, step, owners={"x": x, "tables": tables})


def broken() -> Case:
    return build(same=False)


def mended() -> Case:
    return build(same=True)


EXHIBIT = Exhibit(
    key="vllm-46523",
    title="A function of its own for the capture",
    topic="warm-up missing",
    reports=("vllm-project/vllm#46523", "pytorch/pytorch#185074"),
    seen="There was a warm-up, and then the capture made a new forward function and ran that for the first time while "
    "recording. What compilers do at a first call fell into the capture.",
    mend="Warm up exactly what will be captured.",
    silent=False,
    findings=(("lazy-init-recorded", "tables.full"),),
    broken=broken,
    mended=mended,
)
