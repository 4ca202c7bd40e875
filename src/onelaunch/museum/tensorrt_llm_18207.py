"""An input that a batch leaves out keeps the value of an earlier batch."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(fill: bool) -> Case:
    fixed = SimpleNamespace(tokens=torch.zeros(2), slots=torch.zeros(2))
    batch = SimpleNamespace()

    def prepare(i: int) -> None:
        fresh = {"tokens": torch.tensor([1.0, 2.0]) + i}
        if i == 1:  # the only batch with a picture
            fresh["slots"] = torch.tensor([7.0, 0.0])
        for name, value in fresh.items():
            getattr(fixed, name).copy_(value)
        if fill and "slots" not in fresh:
            fixed.slots.zero_()
        fresh.setdefault("slots", torch.zeros(2))
        batch.__dict__.update(vars(fixed) if i == 0 else fresh)

    def step() -> torch.Tensor:
        return batch.tokens + 100 * batch.slots

    return Case(prepare, step, owners={"batch": batch, "fixed": fixed})


def broken() -> Case:
    return build(fill=False)


def mended() -> Case:
    return build(fill=True)


EXHIBIT = Exhibit(
    key="tensorrt-llm-18207",
    title="An optional input is left out",
    topic="stale input",
    reports=("NVIDIA/TensorRT-LLM#18207",),
    seen="Requests with pictures bring slots for their positions. A batch of text alone brought none, so nothing was "
    "copied, and the graph went on with the slots of an earlier batch.",
    mend="What a batch leaves out is filled with what its absence means, at every step.",
    silent=True,
    findings=(("stale-input", "fixed.slots"),),
    broken=broken,
    mended=mended,
)
