"""A captured copy reads a host variable that is gone when the graph is replayed."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(keep: bool) -> Case:
    shape, source = torch.zeros(2), torch.zeros(2)
    stack: dict[str, torch.Tensor] = {}

    def call(i: int) -> None:
        stack.clear()  # the variables of the call before are gone
        stack[f"call {i}"] = torch.tensor([1.0, 2.0]) * (1 + i)

    def prepare(i: int) -> None:
        call(i)
        source.copy_(stack[f"call {i}"])

    def step() -> torch.Tensor:
        (local,) = stack.values()
        shape.copy_(source if keep else local)
        return shape * 10

    return Case(prepare, step, owners={"stack": stack, "source": source})


def broken() -> Case:
    return build(keep=False)


def mended() -> Case:
    return build(keep=True)


EXHIBIT = Exhibit(
    key="paddle-78568",
    title="The source of a copy lay on the stack",
    topic="moved or freed address",
    reports=("PaddlePaddle/Paddle#78568",),
    seen="Kernels copied small tables from local variables of the host to the device. The graph recorded the address of "
    "the variable, and replayed the copy after the function had returned. 33 files were mended.",
    mend="The source lives as long as the graph, at one address, and is filled anew.",
    silent=True,
    findings=(("freed-address", "stack.call 0"),),
    broken=broken,
    mended=mended,
)
