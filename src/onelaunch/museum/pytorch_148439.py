"""A result is kept without a copy and read after the next replay."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(copy: bool) -> Case:
    state = SimpleNamespace(x=torch.zeros(2), logits=None, kept={})
    best = torch.zeros(2)

    def prepare(i: int) -> None:
        if i > 1:  # keep what the last step gave
            logits = state.logits.clone() if copy else state.logits
            state.kept[f"step {i - 1}"] = logits
            best.copy_(torch.stack(list(state.kept.values())).amax(0))
        rows = [[0.0, 0.0], [9.0, 1.0], [2.0, 8.0], [3.0, 3.0]]
        state.x.copy_(torch.tensor(rows[i]))

    def step() -> torch.Tensor:
        state.logits = state.x * 10
        return state.logits

    def read(logits: torch.Tensor) -> torch.Tensor:
        return best

    owners = {"state": state, "best": best}
    return Case(prepare, step, owners=owners, read=read)


def broken() -> Case:
    return build(copy=False)


def mended() -> Case:
    return build(copy=True)


EXHIBIT = Exhibit(
    key="pytorch-148439",
    title="Results of several steps are kept",
    topic="output overwritten",
    reports=("pytorch/pytorch#148439", "pytorch/pytorch#170604"),
    seen="torch.compile with graphs stopped with 'accessing tensor output of CUDAGraphs that has been overwritten by a "
    "subsequent run'. It watches its outputs; a graph of your own does not, and the values are simply those of the last run.",
    mend="clone() what outlives the next replay.",
    silent=False,
    findings=(("overwritten-output", "state.kept.step 1"),),
    broken=broken,
    mended=mended,
)
