"""What is masked out is multiplied by zero, and zero times garbage is not always zero."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(select: bool) -> Case:
    pages = torch.zeros(3, 2)  # page 0 is the null page
    table, used = torch.tensor([1, 0]), torch.tensor([1.0, 0.0])

    def prepare(i: int) -> None:
        pages[0] = float("nan") if i == 2 else 0.5  # whatever was written there
        pages[1].copy_(torch.tensor([1.0, 2.0]) + i)

    def step() -> torch.Tensor:
        read = pages[table]
        if select:
            read = torch.where(used[:, None] > 0, read, 0.0)
        return (used[:, None] * read).sum(0)

    def padding(i: int) -> list[torch.Tensor]:
        return [pages[0]]

    owners = {"pages": pages, "table": table, "used": used}
    return Case(prepare, step, owners=owners, padding=padding)


def broken() -> Case:
    return build(select=False)


def mended() -> Case:
    return build(select=True)


EXHIBIT = Exhibit(
    key="vllm-36939",
    title="Garbage in the null block",
    topic="padding leaks",
    reports=("vllm-project/vllm#36939", "vllm-project/vllm#57156"),
    seen="Entries of the page table without a page point to page 0, which capture had filled with garbage. Attention reads "
    "it and weighs it with zero. Once it held NaN every token of the batch was lost: all ids were 0.",
    mend="Choose with where instead of multiplying by a mask, or keep the null page clean.",
    silent=True,
    findings=(("padding-leak", "pages"),),
    broken=broken,
    mended=mended,
)
