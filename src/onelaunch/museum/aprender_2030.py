"""A length decides on the host which of two algorithms runs."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(on_device: bool) -> Case:
    state = SimpleNamespace(scores=torch.zeros(4), seq_len=0)
    seq_len = torch.zeros(1)

    def prepare(i: int) -> None:
        state.scores.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]) * (1 + i))
        state.seq_len = 1000 + 20 * i  # the threshold is passed at i = 2
        seq_len.fill_(state.seq_len)

    def step() -> torch.Tensor:
        short, long = state.scores * 2, state.scores.sum() + state.scores
        if on_device:
            return torch.where(seq_len < 1024, short, long)
        return short if state.seq_len < 1024 else long

    return Case(prepare, step, owners={"state": state, "seq_len": seq_len})


def broken() -> Case:
    return build(on_device=False)


def mended() -> Case:
    return build(on_device=True)


EXHIBIT = Exhibit(
    key="aprender-2030",
    title="The graph's key lacks the sequence length",
    topic="frozen value or branch",
    reports=("paiml/aprender#2030",),
    seen="Graphs were kept by batch size alone. Above 1,024 tokens another attention kernel takes over, and a graph that "
    "was recorded below went on with the first one as the text grew.",
    mend="A graph for each side of the threshold, or the choice on the device.",
    silent=True,
    findings=(("frozen-branch", "state.seq_len"),),
    broken=broken,
    mended=mended,
)
