"""Padded tokens take the places of live ones at an expert."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(count_live: bool) -> Case:
    expert = torch.zeros(4, dtype=torch.int64)  # which expert each token wants
    x, live = torch.zeros(4), torch.zeros(4)

    def prepare(i: int) -> None:
        x.copy_(torch.tensor([9.0, 9.0, 1.0, 2.0]) + i)
        live.copy_(torch.tensor([0.0, 0.0, 1.0, 1.0]))  # two padded rows
        expert.copy_(torch.tensor([0, 1 - i % 2, 1, i % 2]))

    def step() -> torch.Tensor:
        wants = torch.nn.functional.one_hot(expert, 2).float()
        if count_live:
            wants = wants * live[:, None]
        place = (wants.cumsum(0) * wants).sum(1)  # 1 is the first in the queue
        return torch.where((place <= 1) & (live > 0), x * 10, 0.0)

    def padding(i: int) -> list[torch.Tensor]:
        return [expert[:2]]

    owners = {"expert": expert, "x": x, "live": live}
    return Case(prepare, step, owners=owners, padding=padding)


def broken() -> Case:
    return build(count_live=False)


def mended() -> Case:
    return build(count_live=True)


EXHIBIT = Exhibit(
    key="vllm-39593",
    title="Padding before the experts",
    topic="padding leaks",
    reports=("vllm-project/vllm#39593",),
    seen="With graphs on several ranks a batch was padded more than before, nearly every padded step had NaN in "
    "its padded rows, and the router sent such a token to one expert several times. The kernel ended with an "
    "illegal access. Here padded tokens take places in the queue of an expert.",
    mend="The router does not count padded rows.",
    silent=False,
    findings=(("padding-leak", "expert"),),
    broken=broken,
    mended=mended,
)
