"""A list of numbers becomes a tensor inside of the step."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(inside: bool) -> Case:
    x, lens = torch.ones(3), torch.zeros(3)
    numbers = [0.0, 0.0, 0.0]

    def prepare(i: int) -> None:
        numbers[:] = [1.0 + i, 2.0, 3.0]
        if not inside:
            lens.copy_(torch.tensor(numbers))

    def step() -> torch.Tensor:
        if inside:
            return x * torch.tensor(numbers)
        return x * lens

    return Case(prepare, step, owners={"x": x, "lens": lens})


def broken() -> Case:
    return build(inside=True)


def mended() -> Case:
    return build(inside=False)


EXHIBIT = Exhibit(
    key="pytorch-91302",
    title="From the host into the step",
    topic="forbidden in capture",
    reports=("pytorch/pytorch#91302",),
    seen="A capture ended with an error because a tensor of the CPU was brought to the GPU in the captured code.",
    mend="Make the tensor once, outside, and copy the numbers into it before each replay.",
    silent=False,
    findings=(("host-data", None),),
    broken=broken,
    mended=mended,
)
