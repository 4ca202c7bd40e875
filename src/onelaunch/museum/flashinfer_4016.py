"""More blocks are launched than the plan has entries."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(mask: bool) -> Case:
    plan = SimpleNamespace(entries=torch.zeros(4), planned=0)
    valid = torch.zeros(4)

    def prepare(i: int) -> None:
        plan.planned = [4, 4, 2, 1][i]
        plan.entries[: plan.planned] = 1.0 + i  # the rest is an older plan's
        valid.copy_((torch.arange(4) < plan.planned).float())

    def step() -> torch.Tensor:
        if mask:
            return (plan.entries * valid).sum()
        return plan.entries[: plan.planned].sum()

    return Case(prepare, step, owners={"plan": plan, "valid": valid})


def broken() -> Case:
    return build(mask=False)


def mended() -> Case:
    return build(mask=True)


EXHIBIT = Exhibit(
    key="flashinfer-4016",
    title="A grid beyond the planned entries",
    topic="frozen value or branch",
    reports=(
        "flashinfer-ai/flashinfer#4016",
        "flashinfer-ai/flashinfer#4002",
        "flashinfer-ai/flashinfer#5176",
    ),
    seen="A graph launches as many blocks as at capture. The planner filled entries for the real work only, so the rest of "
    "the blocks read what an earlier plan had left. From a fresh workspace the result happened to be right.",
    mend="A mask says which entries count, and the grid stays as it is.",
    silent=True,
    findings=(("frozen-value", "plan.planned"),),
    broken=broken,
    mended=mended,
)
