"""A tensor derived from the weights is made anew after each load."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(in_place: bool) -> Case:
    layer = SimpleNamespace(weight=torch.zeros(2, 2), w_uv=torch.zeros(2, 2))
    x = torch.ones(1, 2)

    def prepare(i: int) -> None:
        layer.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]) * (1 + i))
        derived = layer.weight.t().contiguous()  # after loading
        if i == 0 or in_place:
            layer.w_uv.copy_(derived)
        else:
            layer.w_uv = derived

    def step() -> torch.Tensor:
        return x @ layer.w_uv

    return Case(prepare, step, owners={"layer": layer})


def broken() -> Case:
    return build(in_place=False)


def mended() -> Case:
    return build(in_place=True)


EXHIBIT = Exhibit(
    key="vllm-48478",
    title="The weights stayed, what was made from them moved",
    topic="moved or freed address",
    reports=("vllm-project/vllm#48478", "vllm-project/vllm#48251"),
    seen="The parameters were copied in place, as they should be. But quantization and MLA make further tensors from them "
    "after each load (workspaces, sort indices, transposed weights), and these were new ones.",
    mend="What is derived at load time is copied into the tensor of the first load.",
    silent=True,
    findings=(("moved-address", "layer.w_uv"),),
    broken=broken,
    mended=mended,
)
