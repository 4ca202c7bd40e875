"""What a captured step made is kept, so the next capture cannot use its memory."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(keep: bool) -> Case:
    x, kept = torch.zeros(256), []

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        hidden = x * 2
        if keep:
            kept.append(hidden)  # for a look at it later
        return hidden + 1

    owners = {"x": x, "kept": kept}
    return Case(prepare, step, owners=owners, read=lambda out: out[:1])


def broken() -> Case:
    return build(keep=True)


def mended() -> Case:
    return build(keep=False)


EXHIBIT = Exhibit(
    key="sglang-8538",
    title="Intermediates that somebody holds",
    topic="memory",
    reports=("sgl-project/sglang#8538", "vllm-project/vllm#17462"),
    seen="Memory ran out while graphs were captured. The reports do not name this cause; a reference that keeps "
    "blocks of a pool in use is one way to get there.",
    mend="Keep outputs only, and as few as possible; let everything else go before the next capture.",
    silent=True,
    findings=(("pool-growth", "kept"),),
    broken=broken,
    mended=mended,
)
