"""Measurements that others published, beside what the simulation says, with one set of parameters for an engine.

The rows and the parameters are in ``data/published.json``, each row with its source. ``benchmarks/published.py`` fits
the parameters that are said to be fitted, and predicts each row from the others of its engine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from onelaunch.models.config import ModelConfig
from onelaunch.models.shapes import OTHER_SHAPES, SHAPES
from onelaunch.timeline.fusion import Fusion, fused_costs
from onelaunch.timeline.hardware import Hardware, Rate
from onelaunch.timeline.roofline import Efficiency, KernelCost
from onelaunch.timeline.simulate import LaunchCosts, Step, simulate, speedup
from onelaunch.timeline.sweeps import Setup

GAIN = 1.05  # a speed-up of at least this much counts as a gain, anything below as none


@dataclass(frozen=True)
class EngineParameters:
    """What the simulation needs to know of an engine.

    fitted: the parameters that were fitted to its rows, with their values, which are already part of ``launch`` and
    ``efficiency``. why: where the rest is from.
    """

    name: str
    fusion: Fusion
    launch: LaunchCosts
    efficiency: Efficiency
    fitted: Mapping[str, float]
    why: str

    def with_fitted(self, values: Mapping[str, float]) -> EngineParameters:
        """The same engine with other values of what is fitted."""
        launch = {name: value for name, value in values.items() if hasattr(self.launch, name)}
        efficiency = {name: value for name, value in values.items() if hasattr(self.efficiency, name)}
        return replace(
            self,
            launch=replace(self.launch, **launch),  # type: ignore[arg-type]
            efficiency=replace(self.efficiency, **efficiency),
            fitted=dict(values),
        )

    def on(self, config: ModelConfig, gpu: str | Hardware, **more: Any) -> Setup:
        """A model in this engine on a GPU. more: other fields of ``Setup``."""
        return Setup(config, gpu, self.fusion, self.launch, self.efficiency, **more)


@dataclass(frozen=True)
class PublishedRow:
    """One measurement: milliseconds of a decode step without and with graphs.

    batch: rows of the step. context_len: tokens that attention reads. weight_bytes, logits_weight_bytes: of a quantized
    model, as in ``fused_costs``. left_out_ms: what the simulation says, eager and graph, with parameters fitted to the
    other rows of the engine; None where nothing was fitted.
    """

    id: str
    model: str
    engine: str
    gpu: str
    batch: int
    context_len: int
    eager_ms: float
    graph_ms: float
    source: str
    note: str
    dtype: Rate = "bf16"
    weight_bytes: float | None = None
    logits_weight_bytes: float | None = None
    ranks: int = 1
    left_out_ms: tuple[float, float] | None = None

    @property
    def gain(self) -> float:
        """How many times faster it was with graphs."""
        return self.eager_ms / self.graph_ms

    def costs(self, fusion: Fusion) -> list[KernelCost]:
        """The kernels of the step."""
        return fused_costs(
            shape(self.model),
            self.batch,
            self.context_len,
            fusion=fusion,
            dtype=self.dtype,
            weight_bytes=self.weight_bytes,
            logits_weight_bytes=self.logits_weight_bytes,
            ranks=self.ranks,
        )


@dataclass(frozen=True)
class NotSimulated:
    """A published measurement that lacks what the simulation needs. why: what."""

    model: str
    engine: str
    gpu: str | None
    batch: int | None
    eager_ms: float | None
    graph_ms: float | None
    source: str
    why: str


@dataclass(frozen=True)
class Comparison:
    """A row and the two steps simulated for it. Errors are shares of the published time: 0.1 is 10 % too slow."""

    row: PublishedRow
    kernels: int
    eager: Step
    graph: Step

    @property
    def eager_error(self) -> float:
        return self.eager.step_us / 1e3 / self.row.eager_ms - 1

    @property
    def graph_error(self) -> float:
        return self.graph.step_us / 1e3 / self.row.graph_ms - 1

    @property
    def gain(self) -> float:
        """How many times faster the simulated step is with graphs."""
        return speedup(self.eager, self.graph)

    @property
    def right_sign(self) -> bool:
        """Whether both say that a graph gains (``GAIN`` or more), or both that it doesn't."""
        return (self.gain >= GAIN) == (self.row.gain >= GAIN)


def shape(model: str) -> ModelConfig:
    """The shapes of a model that a row is about."""
    return {**SHAPES, **OTHER_SHAPES}[model]


def published_rows() -> list[PublishedRow]:
    """All rows that state model, GPU, batch and both times."""
    rows = []
    for raw in _data()["rows"]:
        left_out = raw.get("left_out_ms")
        rows.append(PublishedRow(**{**raw, "left_out_ms": tuple(left_out) if left_out else None}))
    return rows


def not_simulated() -> list[NotSimulated]:
    """Rows that others quote too, and what they lack."""
    return [NotSimulated(**raw) for raw in _data()["not_simulated"]]


def engine_parameters(name: str) -> EngineParameters:
    """The parameters of one engine, such as ``"vLLM, SGLang"``. Raises KeyError, with the names, for any other."""
    engines = _data()["engines"]
    if name not in engines:
        raise KeyError(f"there are no parameters of {name!r}; there are those of {'; '.join(engines)}.")
    raw = engines[name]
    unfitted = EngineParameters(
        name, Fusion(**raw["fusion"]), LaunchCosts(**raw["launch"]), Efficiency(**raw["efficiency"]), {}, raw["why"]
    )
    return unfitted.with_fitted(raw["fitted"])


def compare(row: PublishedRow, parameters: EngineParameters | None = None) -> Comparison:
    """Simulate a row, with the parameters of its engine or with others."""
    parameters = parameters or engine_parameters(row.engine)
    costs = row.costs(parameters.fusion)
    eager, graph = (
        simulate(costs, row.gpu, mode, launch=parameters.launch, efficiency=parameters.efficiency)
        for mode in ("eager", "graph")
    )
    return Comparison(row, len(costs), eager, graph)


@cache
def _data() -> dict[str, Any]:
    text = files("onelaunch").joinpath("data/published.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
