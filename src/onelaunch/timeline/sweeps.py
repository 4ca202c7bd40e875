"""What a choice costs, over batches and lengths: the gain from graphs, padding, and when a capture has paid for itself.

Everything here is simulated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from onelaunch.models.config import ModelConfig
from onelaunch.timeline.fusion import Fusion, fused_costs
from onelaunch.timeline.hardware import Hardware, Rate
from onelaunch.timeline.roofline import Efficiency
from onelaunch.timeline.simulate import LaunchCosts, Mode, Step, simulate, speedup


@dataclass(frozen=True)
class Setup:
    """A model in an engine on a GPU: all that a step needs besides its batch and its length.

    ranks, all_reduce_us: as in ``fused_costs``. overlap: as in ``lay_out``.
    """

    config: ModelConfig
    gpu: str | Hardware
    fusion: Fusion = field(default_factory=Fusion)
    launch: LaunchCosts = field(default_factory=LaunchCosts)
    efficiency: Efficiency = field(default_factory=Efficiency)
    dtype: Rate = "bf16"
    ranks: int = 1
    all_reduce_us: float = 0.0
    overlap: bool = False

    def step(self, batch: int, context_len: int, mode: Mode = "eager") -> Step:
        """One decode step of ``batch`` requests of ``context_len`` tokens each."""
        costs = fused_costs(
            self.config,
            batch,
            context_len,
            fusion=self.fusion,
            dtype=self.dtype,
            ranks=self.ranks,
            all_reduce_us=self.all_reduce_us,
        )
        return simulate(costs, self.gpu, mode, launch=self.launch, efficiency=self.efficiency, overlap=self.overlap)


@dataclass(frozen=True)
class Gain:
    """One point of a sweep: a step without and with a graph."""

    batch: int
    context_len: int
    eager: Step
    graph: Step

    @property
    def speedup(self) -> float:
        return speedup(self.eager, self.graph)


def gains(setup: Setup, batches: Iterable[int], context_lens: Iterable[int] = (512,)) -> list[Gain]:
    """The gain from a graph for every batch and length, batch by batch."""
    lengths = list(context_lens)
    return [
        Gain(batch, length, setup.step(batch, length), setup.step(batch, length, "graph"))
        for batch in batches
        for length in lengths
    ]


def break_even_steps(capture_us: float, eager: Step, graph: Step) -> float:
    """After how many steps the time that a capture took has come back. Infinite where a graph gains nothing."""
    if capture_us < 0:
        raise ValueError(f"capture_us cannot be negative, found {capture_us}")
    saved = eager.step_us - graph.step_us
    return math.ceil(capture_us / saved) if saved > 0 else math.inf


@dataclass(frozen=True)
class Padding:
    """A batch that runs as a larger one, beside the same batch in a graph of its own, and eagerly."""

    batch: int
    padded_size: int
    exact: Step
    padded: Step
    eager: Step

    @property
    def extra(self) -> float:
        """Share of time on top: 0.05 is 5 % longer than in a graph of its own."""
        return self.padded.step_us / self.exact.step_us - 1


def padding(setup: Setup, batch: int, padded_size: int, context_len: int, dummy_len: int = 1) -> Padding:
    """What it costs to run ``batch`` requests as ``padded_size``, whose dummy requests have ``dummy_len`` tokens.

    Raises ValueError where the padded size is smaller than the batch.
    """
    if padded_size < batch:
        raise ValueError(f"a batch of {batch} does not fit into a graph of {padded_size}.")
    rows = padded_size - batch
    # Attention is priced by the tokens it reads in all rows together.
    average = (batch * context_len + rows * dummy_len) / padded_size
    return Padding(
        batch,
        padded_size,
        setup.step(batch, context_len, "graph"),
        setup.step(padded_size, max(1, round(average)), "graph"),
        setup.step(batch, context_len),
    )
