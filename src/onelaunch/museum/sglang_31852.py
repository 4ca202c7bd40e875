"""Each collective carries a sequence number of the host's."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(on_device: bool) -> Case:
    group = SimpleNamespace(sequence=0.0, mailbox=torch.zeros(2))
    x, number = torch.zeros(1), torch.zeros(1)

    def prepare(i: int) -> None:
        x.fill_(10.0 * (1 + i))
        group.sequence = float(i)  # the peer counts along
        number.fill_(group.sequence)

    def step() -> torch.Tensor:
        sent = number if on_device else group.sequence
        group.mailbox[:1] = x
        group.mailbox[1:] = sent
        return group.mailbox.clone()

    def read(mailbox: torch.Tensor) -> str:
        came = mailbox[1] == group.sequence
        return f"{mailbox[0].item():.0f}" if came else "the peer waits for ever"

    owners = {"group": group, "x": x, "number": number}
    return Case(prepare, step, owners=owners, read=read)


def broken() -> Case:
    return build(on_device=False)


def mended() -> Case:
    return build(on_device=True)


EXHIBIT = Exhibit(
    key="sglang-31852",
    title="Both ranks hang in the replay",
    topic="collectives",
    reports=("sgl-project/sglang#31852",),
    seen="On one GPU the graph of a diffusion model worked. On two, with a collective inside, both ranks hung in replay(): "
    "the number of the operation was part of the recording, and no longer met the peer's.",
    mend="Keep such collectives out of the graph, or use a transport that counts on the device.",
    silent=False,
    findings=(("frozen-value", "group.sequence"),),
    broken=broken,
    mended=mended,
)
