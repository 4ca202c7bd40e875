"""Random numbers from a generator that the graph does not know."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(own: bool) -> Case:
    x, generator = torch.zeros(4), torch.Generator().manual_seed(0)

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        source = generator if own else torch.default_generator
        keep = torch.rand(4, generator=source) > 0.5
        return x * keep

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(own=True)


def mended() -> Case:
    return build(own=False)


EXHIBIT = Exhibit(
    key="pytorch-176752",
    title="A generator of your own",
    topic="random numbers",
    reports=("pytorch/pytorch#176752", "pytorch/pytorch#173421"),
    seen="A graph has to know the generators whose numbers it draws, since each replay must move them on. PyTorch asked for "
    "their registration; the reports make it automatic and keep a state for each capture.",
    mend="graph.register_generator_state(generator) before the capture, or the default generator.",
    silent=False,
    findings=(("unregistered-rng", None),),
    broken=broken,
    mended=mended,
)
