"""A KV cache grows by the outputs of the steps, and they are all the same memory."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(copy: bool) -> Case:
    state = SimpleNamespace(x=torch.zeros(1), keys=None, pieces={})
    total = torch.zeros(1)

    def prepare(i: int) -> None:
        if i > 1:
            keys = state.keys
            state.pieces[i - 1] = keys.clone() if copy else keys
            total.copy_(torch.cat(list(state.pieces.values())).sum()[None])
        state.x.fill_(10.0**i)

    def step() -> torch.Tensor:
        state.keys = state.x * 2
        return state.keys + total

    return Case(prepare, step, owners={"state": state, "total": total})


def broken() -> Case:
    return build(copy=False)


def mended() -> Case:
    return build(copy=True)


EXHIBIT = Exhibit(
    key="pytorch-175557",
    title="A cache that grows by concatenation",
    topic="output overwritten",
    reports=("pytorch/pytorch#175557", "pytorch/pytorch#154824"),
    seen="A decoder appended each step's keys to its cache with torch.cat. Under graphs it stopped at the second step: the "
    "pieces were outputs of earlier runs, whose memory had been taken back.",
    mend="Write into a cache that was allocated once, or clone each piece.",
    silent=False,
    findings=(("overwritten-output", "state.pieces.1"),),
    broken=broken,
    mended=mended,
)
