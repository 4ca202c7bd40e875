"""A graph holds the row of the page table of a request that is gone."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(own_row: bool) -> Case:
    tables = torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7]])
    cache = torch.arange(8.0)
    request = SimpleNamespace(row=torch.zeros(2, dtype=torch.int64))
    if not own_row:
        request.row = tables[0]

    def prepare(i: int) -> None:
        if own_row:
            request.row.copy_(tables[i])
        else:
            request.row = tables[i]  # the next request's row

    def step() -> torch.Tensor:
        return cache[request.row]

    return Case(prepare, step, owners={"request": request})


def broken() -> Case:
    return build(own_row=False)


def mended() -> Case:
    return build(own_row=True)


EXHIBIT = Exhibit(
    key="sparkinfer-147",
    title="The page table of another request",
    topic="moved or freed address",
    reports=(
        "gittensor-ai-lab/sparkinfer#147",
        "gittensor-ai-lab/sparkinfer#150",
    ),
    seen="The graph was recorded for the first request and held the address of its row in the page table. When that "
    "request ended the row went to others, and the graph still read it.",
    mend="The row is copied into a fixed tensor before each replay, or the graph goes with the request.",
    silent=True,
    findings=(("moved-address", "request.row"),),
    broken=broken,
    mended=mended,
)
