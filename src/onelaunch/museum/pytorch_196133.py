"""How many different values there are decides the shape of the result."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(shape_from_data: bool) -> Case:
    experts = torch.zeros(4, dtype=torch.int64)

    def prepare(i: int) -> None:
        experts.copy_(torch.tensor([[0, 1, 2, 2], [1, 1, 1, 1]][i % 2]))

    def step() -> torch.Tensor:
        if shape_from_data:
            return torch.unique(experts)
        used = torch.zeros(3, dtype=torch.int64)
        return used.index_fill(0, experts, 1)  # a flag for each expert

    return Case(prepare, step, owners={"experts": experts})


def broken() -> Case:
    return build(shape_from_data=True)


def mended() -> Case:
    return build(shape_from_data=False)


EXHIBIT = Exhibit(
    key="pytorch-196133",
    title="torch.unique has to wait",
    topic="forbidden in capture",
    reports=("pytorch/pytorch#196133",),
    seen="torch.unique makes the host wait for the device. Beside the replay of a graph with a collective that wait could "
    "stall a whole job. Inside of a capture it is refused at once.",
    mend="A flag for each possible value has a fixed shape.",
    silent=False,
    findings=(("dynamic-shape", "experts"),),
    broken=broken,
    mended=mended,
)
