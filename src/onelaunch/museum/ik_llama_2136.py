"""The source of a copy is a window that moves."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(on_device: bool) -> Case:
    state = SimpleNamespace(window=torch.zeros(3), start=0)
    state.cache = torch.arange(8.0)
    places = torch.zeros(3, dtype=torch.int64)

    def prepare(i: int) -> None:
        state.start = max(0, i - 1)
        places.copy_(torch.arange(3) + state.start)

    def step() -> torch.Tensor:
        if on_device:
            state.window.copy_(state.cache[places])
        else:
            state.window.copy_(state.cache[state.start : state.start + 3])
        return state.window + 0.5

    return Case(prepare, step, owners={"state": state, "places": places})


def broken() -> Case:
    return build(on_device=False)


def mended() -> Case:
    return build(on_device=True)


EXHIBIT = Exhibit(
    key="ik-llama-2136",
    title="The window of attention stands still",
    topic="frozen value or branch",
    reports=("ikawrakow/ik_llama.cpp#2136",),
    seen="A copy of a sliding window of the cache kept its source address, since a check made an exception for copies. Past "
    "about 600 tokens the model read old keys, and the text ran into a loop.",
    mend="Compare the source as well, or gather by places that stand on the device.",
    silent=True,
    findings=(("frozen-value", "state.start"),),
    broken=broken,
    mended=mended,
)
