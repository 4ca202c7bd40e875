"""A graph for decoding is used for batches with prefill in them."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(mixed: bool) -> Case:
    batch = SimpleNamespace(x=torch.arange(6.0), query_len=1)
    lengths = torch.ones(1)

    def prepare(i: int) -> None:
        batch.query_len = [1, 1, 3, 1][i] if mixed else 1
        lengths.fill_(batch.query_len)
        batch.x.copy_(torch.arange(6.0) + i)

    def step() -> torch.Tensor:
        return batch.x.view(2, 3)[:, : batch.query_len].sum(1) / lengths

    return Case(prepare, step, owners={"batch": batch, "lengths": lengths})


def broken() -> Case:
    return build(mixed=True)


def mended() -> Case:
    return build(mixed=False)


EXHIBIT = Exhibit(
    key="torchtitan-3685",
    title="Full graphs for mixed batches",
    topic="frozen value or branch",
    reports=("pytorch/torchtitan#3685", "pytorch/torchtitan#3776"),
    seen="An attention backend said that all its batches could be captured. Graphs of batches with prefill had offsets and "
    "query lengths inside, and a large batch gave meaningless tokens and NaN.",
    mend="Replay for batches of decode steps alone, where each request has one token; run the others eagerly.",
    silent=True,
    findings=(("frozen-value", "batch.query_len"),),
    broken=broken,
    mended=mended,
)
