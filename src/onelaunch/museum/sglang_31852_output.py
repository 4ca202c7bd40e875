"""The caller gets the graph's own output object and compares two of them."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(copy: bool) -> Case:
    state = SimpleNamespace(noise=torch.zeros(2), out=(), before=[])
    change = torch.zeros(2)

    def prepare(i: int) -> None:
        if i > 2:
            change.copy_(state.out[0] - state.before[0])
        if i > 1:
            state.before = list(state.out)
            if copy:
                state.before = [part.clone() for part in state.out]
        state.noise.fill_(2.0**i)

    def step() -> tuple[torch.Tensor, torch.Tensor]:
        state.out = state.noise + 1, state.noise * 3
        return state.out

    def read(out: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return change

    owners = {"state": state, "change": change}
    return Case(prepare, step, owners=owners, read=read)


def broken() -> Case:
    return build(copy=False)


def mended() -> Case:
    return build(copy=True)


EXHIBIT = Exhibit(
    key="sglang-31852-output",
    title="The difference of two steps is zero",
    topic="output overwritten",
    reports=("sgl-project/sglang#31852",),
    seen="A review asked for the outputs of a graph of a diffusion model to be copied. The first attempt copied plain "
    "tensors, and an output object with tensors inside went through as it was.",
    mend="Copy every tensor of the output, however it is nested.",
    silent=True,
    findings=(("overwritten-output", "state.before.0"),),
    broken=broken,
    mended=mended,
)
