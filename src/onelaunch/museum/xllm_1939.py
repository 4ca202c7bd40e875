"""The graph runs as many rows as were recorded; the metadata speaks of fewer."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(pad: bool) -> Case:
    fixed = SimpleNamespace(kv_lens=torch.zeros(4))
    batch = SimpleNamespace()

    def prepare(i: int) -> None:
        live = [4, 4, 3, 2][i]
        lens = torch.tensor([5.0, 6.0, 7.0, 8.0])
        lens[live:] = 0.0  # a padded row is an empty request
        rows = 4 if pad else live
        fixed.kv_lens[:rows].copy_(lens[:rows])
        batch.kv_lens = lens if i else fixed.kv_lens

    def step() -> torch.Tensor:
        return batch.kv_lens / batch.kv_lens.sum()

    def read(share: torch.Tensor) -> torch.Tensor:
        return share[:2]

    owners = {"batch": batch, "fixed": fixed}
    return Case(prepare, step, owners=owners, read=read)


def broken() -> Case:
    return build(pad=False)


def mended() -> Case:
    return build(pad=True)


EXHIBIT = Exhibit(
    key="xllm-1939",
    title="Metadata for 100 of 112 rows",
    topic="stale input",
    reports=("xLLM-AI/xllm#1939",),
    seen="A batch of 100 requests ran in a graph of 112 rows. The attention's metadata described 100, so the last 12 rows "
    "worked with what was left there, and the replay ended with an illegal memory access.",
    mend="Metadata are made for the padded size: a padded row is an empty request.",
    silent=False,
    findings=(("stale-input", "fixed.kv_lens"),),
    broken=broken,
    mended=mended,
)
