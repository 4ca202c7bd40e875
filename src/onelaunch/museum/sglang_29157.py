"""Adapter indices are made for the live requests, and the padded rows keep old ones."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(pad: bool) -> Case:
    fixed = SimpleNamespace(adapter=torch.zeros(4, dtype=torch.int64))
    batch, x = SimpleNamespace(), torch.ones(4)

    def prepare(i: int) -> None:
        live = [4, 4, 2, 3][i]
        adapter = torch.zeros(4, dtype=torch.int64)  # 0 is no adapter
        adapter[:live] = torch.tensor([1, 2, 1, 2])[:live]
        rows = 4 if pad else live
        fixed.adapter[:rows].copy_(adapter[:rows])
        batch.adapter = adapter if i else fixed.adapter

    def step() -> torch.Tensor:
        wanted = torch.nn.functional.one_hot(batch.adapter, 3)
        per_adapter = wanted.sum(0)  # rows that share one product
        return x * 10 + (wanted * per_adapter).sum(1)

    owners = {"batch": batch, "fixed": fixed}
    return Case(prepare, step, owners=owners, read=lambda out: out[:2])


def broken() -> Case:
    return build(pad=False)


def mended() -> Case:
    return build(pad=True)


EXHIBIT = Exhibit(
    key="sglang-29157",
    title="Many adapters at once",
    topic="LoRA",
    reports=("sgl-project/sglang#29157",),
    seen="With five adapters and many requests at once most answers collapsed into one repeated sign; without graphs the "
    "same load was clean. The report does not say why; this is one way to get there.",
    mend="A padded row has no adapter, and that is written at each step.",
    silent=True,
    findings=(("stale-input", "fixed.adapter"),),
    broken=broken,
    mended=mended,
)
