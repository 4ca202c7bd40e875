"""A step runs while its cache is asleep."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(awake: bool) -> Case:
    engine = SimpleNamespace(q=torch.zeros(3), caches={"kv": torch.ones(3)})
    nothing = torch.zeros(3)

    def prepare(i: int) -> None:
        engine.q.fill_(1.0 + i)
        if i == 2 and not awake:
            del engine.caches["kv"]  # asleep; the weights are back already

    def step() -> torch.Tensor:
        return engine.q * engine.caches.get("kv", nothing)

    owners = {"engine": engine, "nothing": nothing}
    return Case(prepare, step, owners=owners, check_liveness=True)


def broken() -> Case:
    return build(awake=False)


def mended() -> Case:
    return build(awake=True)


EXHIBIT = Exhibit(
    key="vllm-44395",
    title="A dummy step in the middle of waking up",
    topic="moved or freed address",
    reports=("vllm-project/vllm#44395",),
    seen="A server was woken in stages, first its weights, then its KV cache. Between the two a rank without requests ran a "
    "dummy step to keep pace with the others, and read memory that had been given back.",
    mend="No replay before everything that the graph reads is there again.",
    silent=False,
    findings=(("freed-address", "engine.caches.kv"),),
    broken=broken,
    mended=mended,
)
