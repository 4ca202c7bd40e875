"""One scale for the whole batch, padded rows included."""

from __future__ import annotations

import torch

from onelaunch.museum.base import Case, Exhibit


def build(live_only: bool) -> Case:
    x, live = torch.zeros(4, 2), torch.zeros(4, 1)

    def prepare(i: int) -> None:
        x[:2].copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]) + i)
        x[2:] = 0.0 if i < 2 else 1000.0  # what earlier work left
        live[:2] = 1.0

    def step() -> torch.Tensor:
        largest = torch.where(live > 0, x, 0.0) if live_only else x
        scale = largest.abs().amax() / 127
        return (x / scale).round() * scale  # to eight bits and back

    def padding(i: int) -> list[torch.Tensor]:
        return [x[2:]]

    def read(out: torch.Tensor) -> torch.Tensor:
        return out[:2]

    owners = {"x": x, "live": live}
    return Case(prepare, step, owners=owners, padding=padding, read=read)


def broken() -> Case:
    return build(live_only=False)


def mended() -> Case:
    return build(live_only=True)


EXHIBIT = Exhibit(
    key="flashinfer-2883",
    title="A scale over padded rows",
    topic="padding leaks",
    reports=("flashinfer-ai/flashinfer#2883", "flashinfer-ai/flashinfer#3057"),
    seen="An attention kernel wrote NaN into padded rows of its output. That alone would do no harm; but quantization "
    "after it takes one scale for several rows, and live ones came out wrong, finite, and quietly worse.",
    mend="Padded rows take no part in what is computed over rows.",
    silent=True,
    findings=(("padding-leak", "x"),),
    broken=broken,
    mended=mended,
)
