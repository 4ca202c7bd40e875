"""The step waits for an event of the warm-up."""

from __future__ import annotations

import torch

from onelaunch import emulator as cuda
from onelaunch.museum.base import Case, Exhibit


def build(fresh: bool) -> Case:
    x, known = torch.zeros(2), {}

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        main = cuda.current_stream()
        y = x * 2
        if fresh or "done" not in known:  # kept from the first run on
            known["done"] = main.record_event()
        main.wait_event(known["done"])
        return y + 1

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(fresh=False)


def mended() -> Case:
    return build(fresh=True)


EXHIBIT = Exhibit(
    key="pytorch-180396",
    title="An event of another time",
    topic="stream, thread or device",
    reports=("pytorch/pytorch#180396", "pytorch/pytorch#180090"),
    seen="Autograd remembers the stream of the warm-up. In the capture it waits for that stream, which is no part of it, and "
    "the capture was invalidated with an error that names neither.",
    mend="Warm up on the stream that will be captured, and record events anew.",
    silent=False,
    findings=(("unjoined-stream", None),),
    broken=broken,
    mended=mended,
)
