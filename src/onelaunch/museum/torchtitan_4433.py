"""The second run is the first that makes a buffer."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(early: bool) -> Case:
    x, state = torch.zeros(2), SimpleNamespace(runs=0, momentum=None)
    if early:
        state.momentum = torch.zeros(2)

    def prepare(i: int) -> None:
        x.copy_(torch.tensor([1.0, 2.0]) + i)

    def step() -> torch.Tensor:
        state.runs += 1
        if state.momentum is None and state.runs > 1:
            state.momentum = torch.zeros(2)  # there is a step to remember
        if state.momentum is None:
            return x * 1
        state.momentum.mul_(0.5).add_(x)
        return state.momentum * 1

    return Case(prepare, step, owners={"x": x, "state": state})


def broken() -> Case:
    return build(early=False)


def mended() -> Case:
    return build(early=True)


EXHIBIT = Exhibit(
    key="torchtitan-4433",
    title="One warm-up was not enough",
    topic="warm-up missing",
    reports=("pytorch/torchtitan#4433", "pytorch/pytorch#120309"),
    seen="Optimizers make their state in the first step and use it in the second; torch.compile runs once to tune and "
    "once to record. Both projects warm up twice for such reasons.",
    mend="Make buffers when the object is made, or warm up until nothing new is made.",
    silent=True,
    findings=(("lazy-init-recorded", "state.momentum"),),
    broken=broken,
    mended=mended,
)
