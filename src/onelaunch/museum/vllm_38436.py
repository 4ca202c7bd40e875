"""A padded request of length 0 divides zero by zero."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(live_only: bool) -> Case:
    sums, lens, live = torch.zeros(3), torch.ones(3), torch.ones(3)

    def prepare(i: int) -> None:
        sums.copy_(torch.tensor([4.0, 6.0, 0.0]) + i)
        lens.copy_(torch.tensor([2.0, 3.0, 1.0]))
        if i:  # there is no third request
            sums[2], lens[2], live[2] = 0.0, 0.0, 0.0

    def step() -> torch.Tensor:
        means = sums / lens
        if live_only:
            means = torch.where(live > 0, means, 0.0)
        return means / means.amax()  # one scale for the batch

    def padding(i: int) -> list[torch.Tensor]:
        return [lens[2:]] if i else []

    owners = {"sums": sums, "lens": lens, "live": live}
    return Case(
        prepare, step, owners=owners, padding=padding, read=lambda out: out[:2]
    )


def broken() -> Case:
    return build(live_only=False)


def mended() -> Case:
    return build(live_only=True)


EXHIBIT = Exhibit(
    key="vllm-38436",
    title="Length zero",
    topic="padding leaks",
    reports=("vllm-project/vllm#38436", "sgl-project/sglang#1779"),
    seen="Padded requests had length 0. A softmax over nothing is NaN, and quantization of 128 rows at once carried it to "
    "the live ones. With length 1 they attend to one token, and what comes out is finite.",
    mend="Padded rows take no part in what is computed over rows; and a dummy has a length that kernels can work with.",
    silent=True,
    findings=(("padding-leak", "lens"),),
    broken=broken,
    mended=mended,
)
