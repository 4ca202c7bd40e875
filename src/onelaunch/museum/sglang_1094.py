"""The padded rows' lengths are left as they were."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(pad: bool) -> Case:
    fixed = SimpleNamespace(seq_lens=torch.zeros(3, dtype=torch.int64))
    batch, cache = SimpleNamespace(), torch.arange(14.0)

    def prepare(i: int) -> None:
        live = [3, 3, 2, 1][i]
        lens = torch.ones(3, dtype=torch.int64)
        lens[:live] = torch.tensor([3, 4, 6])[:live]
        rows = 3 if pad else live
        fixed.seq_lens[:rows].copy_(lens[:rows])
        batch.seq_lens = lens if i else fixed.seq_lens

    def step() -> torch.Tensor:
        ends = batch.seq_lens.cumsum(0)  # of the requests, packed together
        return cache[ends - 1] + 100 * ends[-1]

    owners = {"batch": batch, "fixed": fixed}
    return Case(prepare, step, owners=owners, read=lambda out: out[:1])


def broken() -> Case:
    return build(pad=False)


def mended() -> Case:
    return build(pad=True)


EXHIBIT = Exhibit(
    key="sglang-1094",
    title="Lengths of rows that are gone",
    topic="padding leaks",
    reports=("sgl-project/sglang#1094", "sgl-project/sglang#1789"),
    seen="Lengths of padded rows were not set, and at times a replay ended with an illegal memory access. A later change "
    "mended the sum of all lengths, which has to count the padded ones too.",
    mend="Fill the padded rows' lengths at each step.",
    silent=False,
    findings=(("stale-input", "fixed.seq_lens"),),
    broken=broken,
    mended=mended,
)
