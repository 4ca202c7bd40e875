"""New weights arrive in new memory; the graph multiplies with the old ones."""

from __future__ import annotations

import torch
from torch import nn

from onelaunch.museum.base import Case, Exhibit


def build(in_place: bool) -> Case:
    model = nn.Linear(2, 2, bias=False)
    model.requires_grad_(False)
    x, shelf = torch.ones(1, 2), []

    def prepare(i: int) -> None:
        loaded = torch.full((2, 2), 1.0 + i)  # what the trainer sent
        if i == 0 or in_place:
            model.weight.copy_(loaded)
        else:
            shelf.append(model.weight.data)  # somebody still has them
            model.weight.data = loaded

    def step() -> torch.Tensor:
        return model(x)

    return Case(prepare, step, owners={"model": model})


def broken() -> Case:
    return build(in_place=False)


def mended() -> Case:
    return build(in_place=True)


EXHIBIT = Exhibit(
    key="vllm-48941",
    title="Weights are loaded again",
    topic="moved or freed address",
    reports=("vllm-project/vllm#48941", "vllm-project/vllm#48312"),
    seen="In reinforcement learning the weights change while the server runs. Where a layer got new tensors instead of "
    "new values, captured graphs went on with the old addresses: old weights, somebody else's data, or an illegal access.",
    mend="Loading copies into the parameters that were captured.",
    silent=True,
    findings=(("moved-address", "model.weight"),),
    broken=broken,
    mended=mended,
)
