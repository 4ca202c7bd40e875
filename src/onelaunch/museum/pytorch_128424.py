"""Each recording is of another length, and brings memory of its own."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(pad: bool) -> Case:
    x = torch.zeros(64)
    state = SimpleNamespace(length=16, by_length={})
    if pad:
        state.by_length[64] = torch.zeros(64)

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        state.length += 1  # requests that grow by a token
        length = 64 if pad else state.length
        if length not in state.by_length:
            state.by_length[length] = torch.zeros(64)
        hidden = state.by_length[length].copy_(x)
        return hidden * 2

    owners = {"x": x, "state": state}
    return Case(prepare, step, owners=owners, read=lambda out: out[:1])


def broken() -> Case:
    return build(pad=False)


def mended() -> Case:
    return build(pad=True)


EXHIBIT = Exhibit(
    key="pytorch-128424",
    title="A graph for every shape",
    topic="shape outside of what was captured",
    reports=("pytorch/pytorch#128424", "pytorch/pytorch#188913"),
    seen="With mode='reduce-overhead' each new length of the input was recorded anew. Compiling took very long, and the "
    "GPU's memory went on growing.",
    mend="Pad to a few sizes, and run the rest without a graph.",
    silent=True,
    findings=(("pool-growth", "state.by_length"),),
    broken=broken,
    mended=mended,
)
