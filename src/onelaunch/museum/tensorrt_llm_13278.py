"""A padded row has the state slot of a request that is parked."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(dummy: int) -> Case:
    states = torch.zeros(5)  # four requests, and one for padding
    x, slots = torch.zeros(3), torch.zeros(3, dtype=torch.int64)

    def prepare(i: int) -> None:
        if i == 0:
            states.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0, 0.0]))
        x.copy_(torch.tensor([0.1, 0.2, 5.0]))
        slots.copy_(torch.tensor([0, 1, dummy]))

    def step() -> torch.Tensor:
        states.index_add_(0, slots, x)
        return states[:4].clone()

    def padding(i: int) -> list[torch.Tensor]:
        return [x[2:], states[4:]]

    owners = {"states": states, "x": x, "slots": slots}
    return Case(prepare, step, owners=owners, padding=padding)


def broken() -> Case:
    return build(dummy=3)


def mended() -> Case:
    return build(dummy=4)


EXHIBIT = Exhibit(
    key="tensorrt-llm-13278",
    title="The state of a parked request",
    topic="padding leaks",
    reports=("NVIDIA/TensorRT-LLM#13278",),
    seen="Padded rows of a Mamba model had the slot of a request that was waiting outside of the batch, or an old one. "
    "Each padded step updated its state.",
    mend="A slot for padding alone, for good.",
    silent=True,
    findings=(("padding-leak", "x"),),
    broken=broken,
    mended=mended,
)
