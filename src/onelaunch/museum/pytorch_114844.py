"""An attribute is set between two replays; the graph knows the tensor, not the attribute."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(assign: bool) -> Case:
    model = SimpleNamespace(x=torch.ones(2), scale=torch.full((2,), 3.0))
    first = model.x

    def prepare(i: int) -> None:
        new = torch.full((2,), 1.0 + i)
        if assign:
            model.x = new if i else first
        else:
            model.x.copy_(new)

    def step() -> torch.Tensor:
        return model.x * model.scale

    return Case(prepare, step, owners={"model": model})


def broken() -> Case:
    return build(assign=True)


def mended() -> Case:
    return build(assign=False)


EXHIBIT = Exhibit(
    key="pytorch-114844",
    title="An attribute gets a new tensor",
    topic="stale input",
    reports=("pytorch/pytorch#114844",),
    seen="A model keeps a tensor in an attribute. Eagerly each run works with the tensor that is there; a replay always "
    "works with the one that was there at capture.",
    mend="Write into the tensor that was recorded: copy_, not an assignment.",
    silent=True,
    findings=(("moved-address", "model.x"),),
    broken=broken,
    mended=mended,
)
