"""Each change of a setting allocates its buffer anew."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(allocate: bool) -> Case:
    pipeline = SimpleNamespace(prompt=torch.zeros(2), noise=torch.ones(2))

    def set_prompt(values: list[float]) -> None:
        if allocate:
            pipeline.prompt = torch.tensor(values)
        else:
            pipeline.prompt.copy_(torch.tensor(values))

    def prepare(i: int) -> None:
        if i == 2:  # the user types something else
            set_prompt([5.0, 6.0])
        elif i == 0:
            pipeline.prompt.copy_(torch.tensor([1.0, 2.0]))

    def step() -> torch.Tensor:
        return pipeline.prompt + pipeline.noise

    return Case(prepare, step, owners={"pipeline": pipeline})


def broken() -> Case:
    return build(allocate=True)


def mended() -> Case:
    return build(allocate=False)


EXHIBIT = Exhibit(
    key="librediffusion-14",
    title="A new prompt, a new buffer",
    topic="moved or freed address",
    reports=("jcelerier/librediffusion#14",),
    seen="All was well until a parameter was changed while the program ran; then the picture broke, or did not change. At "
    "random, since the allocator sometimes gave the same address again.",
    mend="Setters write into the buffer that there is.",
    silent=True,
    findings=(("moved-address", "pipeline.prompt"),),
    broken=broken,
    mended=mended,
)
