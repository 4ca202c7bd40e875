"""Every capture takes a workspace of its own."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(one: bool) -> Case:
    x, workspaces = torch.zeros(256), []
    if one:
        workspaces.append(torch.zeros(256))

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        if not one:
            workspaces.append(torch.zeros(256))
        workspace = workspaces[-1]
        workspace.copy_(x)
        return workspace * 2

    owners = {"x": x, "workspaces": workspaces}
    return Case(prepare, step, owners=owners, read=lambda out: out[:1])


def broken() -> Case:
    return build(one=False)


def mended() -> Case:
    return build(one=True)


EXHIBIT = Exhibit(
    key="pytorch-83461",
    title="Memory that grows with each capture",
    topic="memory",
    reports=("pytorch/pytorch#83461", "pytorch/pytorch#99196"),
    seen="A process that captured again and again took more memory each time: cuBLAS made a new workspace for each graph, "
    "although it was called through one handle.",
    mend="One workspace, made before the first capture.",
    silent=True,
    findings=(("pool-growth", "workspaces"),),
    broken=broken,
    mended=mended,
)
