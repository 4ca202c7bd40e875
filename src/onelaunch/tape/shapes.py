"""A tape from shapes alone: what a step would launch and what memory it would take, without running or holding it.

PyTorch's FakeTensors know their shape, type and device and have no memory, so a model of 70 billion parameters is
recorded on a laptop. Kernels, lifetimes and the pool's plan are those of a real capture; addresses are made up, and
there is nothing to replay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch._subclasses.fake_tensor import FakeTensorMode

from onelaunch.tape.pool import Pool
from onelaunch.tape.recorder import Recorder
from onelaunch.tape.tape import Tape


def record_shapes(build: Callable[[], Callable[[], Any]]) -> Tape:
    """The tape of the step that ``build`` makes.

    build: makes the model, the inputs and whatever else the step touches, and returns the step, which is called twice:
    a warm-up, then recorded. All tensors that the two make are FakeTensors; PyTorch refuses to mix in others.

        def build():
            model, x = torch.nn.Linear(100_000, 100_000), torch.empty(8, 100_000)
            return lambda: model(x)

        tape = record_shapes(build)

    Raises CaptureError where the step does what a capture refuses. The emulator's ``with graph(g):`` records shapes too
    if it is entered under a ``FakeTensorMode``.
    """
    with FakeTensorMode():
        step = build()
        step()
        recorder = Recorder(Pool())
        recorder.start()
        try:
            made = step()  # noqa: F841 - what still has an owner when the recording ends is an output
        except BaseException:
            recorder.stop(failed=True)
            raise
        return recorder.stop()
