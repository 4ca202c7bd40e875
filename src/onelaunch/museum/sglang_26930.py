"""Which adapter a request uses is a Python list, read while the step is built."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(on_device: bool) -> Case:
    adapters = torch.tensor([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]])
    batch = SimpleNamespace(x=torch.ones(2, 2), first=0, second=0)
    chosen = torch.zeros(2, dtype=torch.int64)

    def prepare(i: int) -> None:
        batch.first, batch.second = [(1, 0), (1, 0), (1, 2), (0, 2)][i]
        chosen.copy_(torch.tensor([batch.first, batch.second]))

    def step() -> torch.Tensor:
        if on_device:
            return batch.x + adapters[chosen]
        delta = torch.stack((adapters[batch.first], adapters[batch.second]))
        return batch.x + delta

    owners = {"batch": batch, "adapters": adapters, "chosen": chosen}
    return Case(prepare, step, owners=owners)


def broken() -> Case:
    return build(on_device=False)


def mended() -> Case:
    return build(on_device=True)


EXHIBIT = Exhibit(
    key="sglang-26930",
    title="Right at first, garbled after a while",
    topic="LoRA",
    reports=("sgl-project/sglang#26930",),
    seen="A quantized model with an adapter wrote well for about 100 tokens and then garbled text, the same each time, "
    "with graphs and never without. The report does not say why; this is one way to get that picture.",
    mend="The adapters of a batch are a tensor of indices in a fixed buffer.",
    silent=True,
    findings=(
        ("frozen-value", "batch.second"),
        ("frozen-value", "batch.first"),
    ),
    broken=broken,
    mended=mended,
)
