"""The step asks the device for a number."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(ask: bool) -> Case:
    x = torch.zeros(2)

    def prepare(i: int) -> None:
        x.copy_(torch.tensor([1.0 + i, -1.0]))

    def step() -> torch.Tensor:
        if ask:
            return x / x.max().item()
        return x / x.max()

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(ask=True)


def mended() -> Case:
    return build(ask=False)


EXHIBIT = Exhibit(
    key="lightning-thunder-727",
    title=".item() in the step",
    topic="forbidden in capture",
    reports=("Lightning-AI/lightning-thunder#727",),
    seen="A compiled function that called .item() could not be captured.",
    mend="Leave the number on the device: a tensor with one element divides as well.",
    silent=False,
    findings=(("host-sync", None),),
    broken=broken,
    mended=mended,
)
