"""The graph was recorded without any adapter, so there is no adapter in it."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(always: bool) -> Case:
    lora = SimpleNamespace(active=0)
    x, a, b = torch.ones(1, 2), torch.ones(2, 1), torch.ones(1, 2)
    weight, switch = torch.eye(2), torch.zeros(1)

    def prepare(i: int) -> None:
        lora.active = 0 if i < 2 else 1  # a dummy batch is recorded
        switch.fill_(float(lora.active))
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        if always:
            return x @ weight + switch * (x @ a @ b)
        if lora.active:
            return x @ weight + x @ a @ b
        return x @ weight

    owners = {"lora": lora, "x": x, "a": a, "b": b, "switch": switch}
    return Case(prepare, step, owners=owners)


def broken() -> Case:
    return build(always=False)


def mended() -> Case:
    return build(always=True)


EXHIBIT = Exhibit(
    key="vllm-15090",
    title="Recorded without the adapter",
    topic="LoRA",
    reports=("vllm-project/vllm#15090",),
    seen="Graphs were recorded for a dummy batch whose mapping said adapter 0 for each token; the indices that arrived were "
    "a mixture of -1, no adapter, and 0. What such a graph does for adapters depends on what was active then.",
    mend="Record with the adapters' kernels inside and switch on the device, or keep a second set of graphs.",
    silent=True,
    findings=(("frozen-branch", "lora.active"),),
    broken=broken,
    mended=mended,
)
