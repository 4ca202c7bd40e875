"""Where in the cache a token goes is worked out on the host."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(on_device: bool) -> Case:
    state = SimpleNamespace(cache=torch.zeros(4), key=torch.ones(1), position=0)
    position = torch.zeros(1, dtype=torch.int64)

    def prepare(i: int) -> None:
        state.key.fill_(1.0 + i)
        state.position = i
        position.fill_(i)

    def step() -> torch.Tensor:
        if on_device:
            state.cache.index_copy_(0, position, state.key)
        else:
            state.cache[state.position : state.position + 1] = state.key
        return state.cache * 10

    return Case(prepare, step, owners={"state": state, "position": position})


def broken() -> Case:
    return build(on_device=False)


def mended() -> Case:
    return build(on_device=True)


EXHIBIT = Exhibit(
    key="infinilm-540",
    title="Each token overwrites the same place",
    topic="frozen value or branch",
    reports=("InfiniTensor/InfiniLM#540",),
    seen="Offsets into the KV cache and shapes of the attention were read on the host while the graph was recorded, so a "
    "replay went on with the decisions of the capture.",
    mend="The position is a tensor, and an index operation writes there.",
    silent=True,
    findings=(("frozen-value", "state.position"),),
    broken=broken,
    mended=mended,
)
