"""Padded rows have slot -1, and -1 is the last row of the cache."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(dummy: int) -> Case:
    cache = torch.zeros(9)  # eight slots, and one that nobody reads
    keys, slots = torch.zeros(4), torch.zeros(4, dtype=torch.int64)
    last = cache[:8] if dummy < 0 else cache

    def prepare(i: int) -> None:
        cache[7] = 70.0  # another request's
        keys.copy_(torch.tensor([1.0, 2.0, 0.5, 0.5]) + i)
        slots.copy_(torch.tensor([2 * i, 2 * i + 1, dummy, dummy]))

    def step() -> torch.Tensor:
        last[slots] = keys
        return cache[:8].clone()

    def padding(i: int) -> list[torch.Tensor]:
        return [keys[2:], cache[8:]]

    owners = {"cache": cache, "keys": keys, "slots": slots}
    return Case(prepare, step, owners=owners, padding=padding)


def broken() -> Case:
    return build(dummy=-1)


def mended() -> Case:
    return build(dummy=8)


EXHIBIT = Exhibit(
    key="vllm-43810",
    title="Slot -1 is a slot",
    topic="padding leaks",
    reports=("vllm-project/vllm#43810",),
    seen="64 tokens ran in a graph of 128. The other 64 rows had slot -1, which an index operation takes as the last one: "
    "they overwrote the state of a request that had its last token there.",
    mend="A slot of its own for padded rows, or a kernel that leaves negative slots out.",
    silent=True,
    findings=(("padding-leak", "keys"),),
    broken=broken,
    mended=mended,
)
