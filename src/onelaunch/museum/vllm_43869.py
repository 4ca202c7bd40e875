"""The obvious way to leave padded slots out is refused."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(select: bool) -> Case:
    cache = torch.zeros(9)  # the last row is the dummy's
    keys = torch.ones(3)
    slots = torch.zeros(3, dtype=torch.int64)

    def prepare(i: int) -> None:
        keys.fill_(1.0 + i)
        slots.copy_(torch.tensor([i, i + 4, -1]))

    def step() -> torch.Tensor:
        if select:
            live = slots >= 0
            cache[slots[live]] = keys[live]
        else:
            cache[torch.where(slots >= 0, slots, 8)] = keys
        return cache[:8] * 2

    owners = {"cache": cache, "keys": keys, "slots": slots}
    return Case(prepare, step, owners=owners)


def broken() -> Case:
    return build(select=True)


def mended() -> Case:
    return build(select=False)


EXHIBIT = Exhibit(
    key="vllm-43869",
    title="Selecting the live rows",
    topic="forbidden in capture",
    reports=("vllm-project/vllm#43869",),
    seen="The change that mended slot -1 (vllm-project/vllm#43810) could not select the live rows with a mask: how many "
    "there are is known to the device alone. It took a kernel that leaves negative slots out.",
    mend="Send padded rows to a row that nobody reads.",
    silent=False,
    findings=(("dynamic-shape", "live"),),
    broken=broken,
    mended=mended,
)
