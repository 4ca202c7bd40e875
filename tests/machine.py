"""Where a test runs that must hold on a GPU and on the emulator alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class Machine:
    """The graph API and the device that it works on."""

    api: Any
    device: str

    def tensor(self, *values: float) -> Tensor:
        return torch.tensor(values, device=self.device)

    def record(self, step: Callable[[], Any], **options: Any) -> tuple[Any, Any]:
        """Warm up on a side stream, capture, and return the graph and what the step returned."""
        self.warm_up(step)
        return self.capture(step, **options)

    def warm_up(self, step: Callable[[], Any], times: int = 1) -> None:
        side = self.api.Stream()
        side.wait_stream(self.api.current_stream())
        with self.api.stream(side):
            for _ in range(times):
                step()
        self.api.current_stream().wait_stream(side)

    def capture(self, step: Callable[[], Any], **options: Any) -> tuple[Any, Any]:
        graph = self.api.CUDAGraph()
        with self.api.graph(graph, **options):
            result = step()
        return graph, result

    def generator(self, seed: int) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(seed)

    def assert_same(self, found: Any, expected: Any) -> None:
        """Equal bit for bit on the emulator. A GPU may pick another kernel for a capture, so there close is enough."""
        exact: dict[str, Any] = {"rtol": 0, "atol": 0} if self.device == "cpu" else {}
        torch.testing.assert_close(found, expected, **exact)
