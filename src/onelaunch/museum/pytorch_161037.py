"""An old graph hangs in a cycle, and the collector finds it in the middle of a capture."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import torch

from onelaunch import emulator as cuda
from onelaunch.museum.base import Case, Exhibit


def build(early: bool) -> Case:
    x, server = torch.zeros(2), SimpleNamespace(runner=None)

    def collect() -> None:
        server.runner = None
        gc.collect()

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)
        if i == 0:
            runner = SimpleNamespace(graph=cuda.CUDAGraph())
            runner.me = runner  # a cycle: only the collector ends it
            with cuda.graph(runner.graph):
                x.mul(2)
            server.runner = runner
            del runner
            if early:
                collect()

    def step() -> torch.Tensor:
        y = x * 2
        if cuda.is_current_stream_capturing():
            collect()  # its turn happens to be now
        return y + 1

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(early=False)


def mended() -> Case:
    return build(early=True)


EXHIBIT = Exhibit(
    key="pytorch-161037",
    title="The collector meets an old graph",
    topic="allocator or garbage collector",
    reports=(
        "pytorch/pytorch#161037",
        "NVIDIA/TransformerEngine#2092",
        "mujocolab/mjlab#821",
    ),
    seen="PyTorch had collected garbage before each capture, and stopped to, because it took long. Now and then a "
    "capture failed: the collector ran in the middle of it and destroyed a graph that nobody used any more. Where it "
    "runs is chance; here it is a line of the step.",
    mend="Let go of old graphs and collect garbage before the capture, and keep the collector off until it has ended.",
    silent=False,
    findings=(("host-sync", None),),
    broken=broken,
    mended=mended,
)
