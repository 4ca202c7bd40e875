"""A table of pages is wider than the one that was recorded."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(grow: bool) -> Case:
    fixed = SimpleNamespace(
        table=torch.zeros(2 if grow else 4, dtype=torch.int64)
    )
    cache = torch.tensor([0.0, 1.0, 10.0, 100.0, 1000.0])

    def prepare(i: int) -> None:
        pages = [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]][i]
        if len(pages) > len(fixed.table):
            fixed.table = torch.zeros(len(pages), dtype=torch.int64)
        fixed.table.zero_()
        fixed.table[: len(pages)].copy_(torch.tensor(pages))

    def step() -> torch.Tensor:
        return cache[fixed.table].sum()

    return Case(prepare, step, owners={"fixed": fixed})


def broken() -> Case:
    return build(grow=True)


def mended() -> Case:
    return build(grow=False)


EXHIBIT = Exhibit(
    key="nano-vllm-190",
    title="A table wider than the captured one",
    topic="shape outside of what was captured",
    reports=("GeeeekExplorer/nano-vllm#190", "predibase/lorax#363"),
    seen="The fixed table had 16 columns, a batch needed 17, and the copy into it stopped with a shape error. What stands "
    "here is the tempting mend, a larger buffer on the spot, which turns the error into wrong numbers.",
    mend="Record with the largest width that the model allows; run eagerly what is beyond.",
    silent=False,
    findings=(("moved-address", "fixed.table"),),
    broken=broken,
    mended=mended,
)
