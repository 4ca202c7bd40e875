"""The work was done before, and the graph holds nothing."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(cached: bool) -> Case:
    x = torch.zeros(2)
    results: dict[str, torch.Tensor] = {}

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        if cached and "out" in results:
            return results["out"]
        results["out"] = x * 10
        return results["out"]

    return Case(prepare, step, owners={"x": x, "results": results})


def broken() -> Case:
    return build(cached=True)


def mended() -> Case:
    return build(cached=False)


EXHIBIT = Exhibit(
    key="pytorch-124506",
    title="An empty graph",
    topic="silent eager",
    reports=("pytorch/pytorch#124506",),
    seen="The report asks for a way to fail hard, since a fallback is noted in a log at best. The extreme of it is a capture "
    "in which nothing is launched: here because a result was cached in the warm-up. PyTorch warns of an empty graph.",
    mend="Call the work itself in the step; assert that the graph has as many kernels as you expect.",
    silent=True,
    findings=(("silent-eager", None),),
    broken=broken,
    mended=mended,
)
