"""The largest batches fit into no graph, and run eagerly without a word."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(sizes: tuple[int, ...]) -> Case:
    weight, x = torch.eye(2) * 3, torch.zeros(12, 2)

    def prepare(i: int) -> bool:
        size = 12 if i == 2 else 8
        x.zero_()
        x[:size] = 1.0 + i
        return size <= max(sizes)  # whether there is a graph for it

    def step() -> torch.Tensor:
        return (x @ weight).relu() + 1

    def read(out: torch.Tensor) -> torch.Tensor:
        return out[0]

    return Case(prepare, step, owners={"x": x, "weight": weight}, read=read)


def broken() -> Case:
    return build(sizes=(1, 2, 4, 8))


def mended() -> Case:
    return build(sizes=(1, 2, 4, 8, 12))


EXHIBIT = Exhibit(
    key="vllm-ascend-16049",
    title="The ceiling is not in the list",
    topic="silent eager",
    reports=("vllm-project/vllm-ascend#16049", "vllm-project/vllm#40734"),
    seen="A server took up to 12 requests, and sizes were recorded in steps of 8. Batches of 9 to 12 ran eagerly: 73 tokens a "
    "second where padding to 16 gave 500. Nothing in the log said so.",
    mend="The ceiling belongs into the list, and a fallback into the log.",
    silent=True,
    findings=(("silent-eager", None),),
    broken=broken,
    mended=mended,
)
