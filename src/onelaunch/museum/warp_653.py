"""The last operation of the step brings the result to the host."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(in_step: bool) -> Case:
    x, on_host = torch.zeros(2), torch.zeros(2)

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        if in_step:
            on_host.copy_((x * 2).cpu())
        return x * 2

    def read(out: torch.Tensor) -> torch.Tensor:
        return out.cpu()

    return Case(prepare, step, owners={"x": x}, read=read)


def broken() -> Case:
    return build(in_step=True)


def mended() -> Case:
    return build(in_step=False)


EXHIBIT = Exhibit(
    key="warp-653",
    title="A copy to the host at the end",
    topic="forbidden in capture",
    reports=("NVIDIA/warp#653",),
    seen="A long graph was to end with a copy to the host. The capture failed, and the same copy behind the launch "
    "of the graph returned garbage.",
    mend="Copy after the replay, from the graph's output.",
    silent=False,
    findings=(("host-sync", None),),
    broken=broken,
    mended=mended,
)
