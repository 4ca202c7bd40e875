"""A flag says that the peer's data are there, and its colour is always the same."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(on_device: bool) -> Case:
    link = SimpleNamespace(color=0.0, flag=torch.zeros(1), data=torch.zeros(1))
    peer, color = torch.zeros(1), torch.zeros(1)

    def prepare(i: int) -> None:
        link.color = 1.0 + i
        color.fill_(link.color)
        late = i == 1  # then the flag and the data are those of round 0
        link.flag.fill_(1.0 if late else link.color)
        peer.fill_(10.0 if late else 10.0 * (1 + i))

    def step() -> torch.Tensor:
        wanted = color if on_device else link.color
        arrived = link.flag == wanted
        link.data.copy_(torch.where(arrived, peer, -1.0))
        return link.data + 0.0

    owners = {"link": link, "peer": peer, "color": color}
    return Case(prepare, step, owners=owners)


def broken() -> Case:
    return build(on_device=False)


def mended() -> Case:
    return build(on_device=True)


EXHIBIT = Exhibit(
    key="aiter-3928",
    title="The flag of an earlier round",
    topic="collectives",
    reports=("ROCm/aiter#3928",),
    seen="Ranks of a fast all-reduce wait for a flag of the round's colour. The host gave the colour as a number, so every "
    "replay waited for the one of the capture, which was there already, and summed the data of the round before.",
    mend="The counter stands on the device, and the kernel moves it on.",
    silent=True,
    findings=(("frozen-value", "link.color"),),
    broken=broken,
    mended=mended,
)
