"""The step explorer: choose a model, a GPU, a batch and what a launch costs, and see who waits for whom.

Kernel times come from the roofline, the lanes from ``timeline.lay_out``. The page has the kernel times with it and lays
them out itself, by the same rules; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from onelaunch.timeline import Efficiency, Hardware, KernelCost, LaunchCosts, Step, hardware, lay_out, time_us
from onelaunch.viz.explorer import Explorer, Knob, Settings
from onelaunch.viz.figure import Figure
from onelaunch.viz.steps import milliseconds, step_lanes

LAUNCH_US = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class StepExplorer(Explorer):
    """Made by ``step_explorer``."""

    kind = "explore_step"

    def __init__(
        self,
        models: Mapping[str, Callable[[int], Sequence[KernelCost]]],
        gpus: Sequence[Hardware],
        batches: Sequence[int],
        launch_us: Sequence[float],
        launch: LaunchCosts,
        efficiency: Efficiency,
        first: Settings,
    ) -> None:
        if not models or not gpus or not batches or not launch_us:
            raise ValueError("an explorer needs a model, a GPU, a batch and a launch cost to choose from")
        self.models, self.gpus, self.launch, self.efficiency = models, gpus, launch, efficiency
        self.batches = list(batches)
        names = [gpu.name for gpu in gpus]
        self.knobs = [
            Knob("model", "Model", "choice", list(models), first.get("model", next(iter(models)))),
            Knob("gpu", "GPU", "choice", names, first.get("gpu", names[0])),
            Knob("batch", "Requests in the batch", "steps", self.batches, first.get("batch", self.batches[0])),
            Knob(
                "launch_us",
                "Host's time for a launch",
                "steps",
                list(launch_us),
                first.get("launch_us", launch_us[0]),
                " µs",
            ),
        ]

    @cached_property
    def times(self) -> dict[str, dict[str, Any]]:
        """For each model the names of its kernels, and for each GPU and batch their times in µs, to the nanosecond.

        Most kernels of a step are repeated in every layer, so each is there once and ``order`` says when it comes.
        """
        found: dict[str, dict[str, Any]] = {}
        for name, costs_of in self.models.items():
            by_batch = {batch: costs_of(batch) for batch in self.batches}
            columns = list(zip(*by_batch.values(), strict=True))  # for each kernel, its cost at each batch
            kinds = list(dict.fromkeys(columns))
            found[name] = {
                "names": [column[0].name for column in kinds],
                "order": [kinds.index(column) for column in columns],
                "us": {
                    gpu.name: {
                        str(batch): [round(time_us(column[at], gpu, self.efficiency), 3) for column in kinds]
                        for at, batch in enumerate(self.batches)
                    }
                    for gpu in self.gpus
                },
            }
        return found

    @property
    def data(self) -> Mapping[str, Any]:  # type: ignore[override]
        """What the script needs."""
        launch = asdict(self.launch)
        del launch["launch_us"]
        return {"models": self.times, "launch": launch, "alt": "Host and device, eagerly and as a graph, simulated."}

    def steps(self, settings: Settings) -> tuple[Step, Step]:
        """The step eagerly, and as a graph."""
        model = self.times[settings["model"]]
        us = model["us"][settings["gpu"]][str(settings["batch"])]
        times = [(model["names"][kind], us[kind]) for kind in model["order"]]
        launch = replace(self.launch, launch_us=settings["launch_us"])
        return lay_out(times, "eager", launch=launch), lay_out(times, "graph", launch=launch)

    def words(self, settings: Settings) -> str:
        """Both times, the speed-up, and who waits."""
        eager, graph = self.steps(settings)
        said = (
            f"Simulated: {len(eager.device)} kernels, {milliseconds(eager.step_us)} eagerly and "
            f"{milliseconds(graph.step_us)} as a graph, {eager.step_us / graph.step_us:.2f} times as fast. "
            f"The device computes in {eager.busy_share:.0%} of the eager step and in {graph.busy_share:.0%} of the "
            "graph. "
        )
        if eager.launch_bound:
            return f"{said}Eagerly it waits for the host: launch-bound."
        return f"{said}Eagerly the host waits for it: not launch-bound."

    def figure(self, settings: Settings) -> Figure:
        """The beginning of both steps as lanes, and both steps in full."""
        return step_lanes(self.steps(settings))


def step_explorer(
    models: Mapping[str, Callable[[int], Sequence[KernelCost]]],
    gpus: Sequence[str | Hardware],
    batches: Sequence[int] = BATCHES,
    launch_us: Sequence[float] = LAUNCH_US,
    *,
    launch: LaunchCosts | None = None,
    efficiency: Efficiency | None = None,
    first: Settings | None = None,
) -> StepExplorer:
    """Two lanes with knobs: the model, the GPU, the batch, the host's time for a launch.

    models: name -> a function from the batch to the kernels of a step, as ``fused_costs`` and ``kernel_costs`` list
    them; their number must not depend on the batch. launch: all that launching costs beside ``launch_us``. first: what
    is chosen at first: ``model``, ``gpu``, ``batch``, ``launch_us``; the first of each where it isn't named.
    """
    return StepExplorer(
        models,
        [hardware(gpu) for gpu in gpus],
        batches,
        launch_us,
        launch or LaunchCosts(),
        efficiency or Efficiency(),
        first or {},
    )
