"""The step sets the generator back, to draw the same numbers twice."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(rewind: bool) -> Case:
    x = torch.zeros(4)

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        if not rewind:
            keep = torch.rand(4) > 0.5  # drawn once, used twice
            return x * keep + 10 * keep
        state = torch.get_rng_state()
        forward = x * (torch.rand(4) > 0.5)
        torch.set_rng_state(state)
        return forward + 10 * (torch.rand(4) > 0.5)

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(rewind=True)


def mended() -> Case:
    return build(rewind=False)


EXHIBIT = Exhibit(
    key="pytorch-162505",
    title="Checkpointing winds the generator back",
    topic="random numbers",
    reports=("pytorch/pytorch#162505", "Dao-AILab/flash-attention#165"),
    seen="Activation checkpointing runs a layer twice with the same random numbers: it reads the generator's state and sets "
    "it again. Both are the host's work, and a capture refused them.",
    mend="Draw once and keep the mask; newer releases of PyTorch can wind back within a capture.",
    silent=False,
    findings=(("unregistered-rng", None), ("unregistered-rng", None)),
    broken=broken,
    mended=mended,
)
