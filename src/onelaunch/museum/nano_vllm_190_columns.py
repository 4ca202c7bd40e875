"""A narrower table of pages is copied over a wider one, and the old columns stay."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(clear: bool) -> Case:
    fixed = SimpleNamespace(table=torch.full((1, 3), -1))
    batch = SimpleNamespace()
    cache = torch.tensor([1.0, 10.0, 100.0, 1000.0, 0.0])  # the last is empty

    def prepare(i: int) -> None:
        pages = [[0, 1], [0, 1, 2], [3], [1, 3]][i]
        if clear:
            fixed.table.fill_(-1)
        fixed.table[0, : len(pages)].copy_(torch.tensor(pages))
        table = torch.full((1, 3), -1)
        table[0, : len(pages)] = torch.tensor(pages)
        batch.table = table if i else fixed.table

    def step() -> torch.Tensor:
        return cache[batch.table].sum(1)  # -1 is the last

    return Case(prepare, step, owners={"batch": batch, "fixed": fixed})


def broken() -> Case:
    return build(clear=False)


def mended() -> Case:
    return build(clear=True)


EXHIBIT = Exhibit(
    key="nano-vllm-190-columns",
    title="Columns of an earlier batch",
    topic="stale input",
    reports=("GeeeekExplorer/nano-vllm#190",),
    seen="The report names it in passing: the table of pages is used again from step to step, and a copy that is narrower "
    "than the one before leaves the old columns behind.",
    mend="Clear the fixed table to 'no page' before each copy.",
    silent=True,
    findings=(("stale-input", "fixed.table"),),
    broken=broken,
    mended=mended,
)
