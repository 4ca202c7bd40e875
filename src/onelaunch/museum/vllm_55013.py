"""Memory is given back while the server sleeps, and taken anew when it wakes."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(same_memory: bool) -> Case:
    engine = SimpleNamespace(cache=torch.zeros(3), q=torch.zeros(3))

    def prepare(i: int) -> None:
        engine.q.fill_(1.0 + i)
        if i == 2 and not same_memory:  # sleep, then wake up
            engine.cache = None
            engine.cache = torch.zeros(3)
        engine.cache.fill_(10.0 if i < 2 else 20.0)

    def step() -> torch.Tensor:
        return engine.q * engine.cache

    return Case(prepare, step, owners={"engine": engine})


def broken() -> Case:
    return build(same_memory=False)


def mended() -> Case:
    return build(same_memory=True)


EXHIBIT = Exhibit(
    key="vllm-55013",
    title="Sleep and wake",
    topic="moved or freed address",
    reports=("vllm-project/vllm#55013",),
    seen="A server with a draft model was put to sleep at level 2 and woken. The first request after that died in the "
    "replay of the draft's graph with an illegal memory access.",
    mend="Whatever a graph reads comes back at the same address, or the graph is recorded again.",
    silent=False,
    findings=(("moved-address", "engine.cache"),),
    broken=broken,
    mended=mended,
)
