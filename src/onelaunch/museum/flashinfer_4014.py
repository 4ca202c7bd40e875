"""Two layers share a graph's key and differ in a scale."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(in_buffer: bool) -> Case:
    attention = SimpleNamespace(scale=1.0)
    scale, scores = torch.ones(1), torch.tensor([1.0, 2.0])

    def prepare(i: int) -> None:
        attention.scale = [1.0, 1.0, 3.0, 3.0][i]
        scale.fill_(attention.scale)

    def step() -> torch.Tensor:
        factor = scale if in_buffer else attention.scale
        return torch.softmax(scores * factor, 0)

    return Case(prepare, step, owners={"attention": attention, "scale": scale})


def broken() -> Case:
    return build(in_buffer=False)


def mended() -> Case:
    return build(in_buffer=True)


EXHIBIT = Exhibit(
    key="flashinfer-4014",
    title="The scale is not in the key",
    topic="frozen value or branch",
    reports=("flashinfer-ai/flashinfer#4014",),
    seen="A graph of attention had the scale built in as a constant, and the key under which it was kept did not name it. A "
    "call with the same shapes and another scale got plausible, finite, wrong numbers.",
    mend="Everything that is frozen belongs into the key; what changes belongs into a buffer.",
    silent=True,
    findings=(("frozen-value", "attention.scale"),),
    broken=broken,
    mended=mended,
)
