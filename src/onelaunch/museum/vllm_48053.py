"""A thread in the background waits for the device while the main thread captures."""

from __future__ import annotations

import contextlib
import threading

import torch

from onelaunch import emulator as cuda
from onelaunch.museum.base import Case, Exhibit


def build(busy: bool) -> Case:
    x = torch.zeros(2)

    def background() -> None:
        with contextlib.suppress(RuntimeError):  # nobody looks here
            cuda.synchronize()  # a copy to the host, a prefetcher

    def prepare(i: int) -> None:
        x.fill_(1.0 + i)

    def step() -> torch.Tensor:
        y = x * 2
        if busy:
            thread = threading.Thread(target=background)
            thread.start()
            thread.join()
        return y + 1

    return Case(prepare, step, owners={"x": x})


def broken() -> Case:
    return build(busy=True)


def mended() -> Case:
    return build(busy=False)


EXHIBIT = Exhibit(
    key="vllm-48053",
    title="Another thread breaks the capture",
    topic="stream, thread or device",
    reports=("vllm-project/vllm#48053",),
    seen="Threads that copy to the host, fetch weights ahead or read telemetry called CUDA during a capture. In the mode "
    "'global' any such call of any thread invalidates it.",
    mend="Let the thread rest during the capture, or capture with capture_error_mode='thread_local'.",
    silent=False,
    findings=(("host-sync", None),),
    broken=broken,
    mended=mended,
)
