"""Fit the parameters of each engine in ``data/published.json`` to its rows, and predict each row from the others.

Fitted are only the parameters that an engine lists under "fitted", by least squares of the logarithms of the ratios of
simulated and published times. The result goes back into the file.

    python benchmarks/published.py
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from onelaunch.timeline.hardware import hardware
from onelaunch.timeline.published import EngineParameters, PublishedRow, compare, engine_parameters, published_rows
from onelaunch.timeline.roofline import KernelCost, time_us

DATA = Path(__file__).resolve().parents[1] / "src/onelaunch/data/published.json"
START = {"launch_us": 20.0, "finish_us": 400.0, "memory": 0.7, "added_us": 1.0}
LARGEST = {"memory": 1.0}


Priced = tuple[PublishedRow, list[KernelCost]]


def step_ms(costs: list[KernelCost], gpu: str, parameters: EngineParameters) -> tuple[float, float]:
    """Eager and graph step as ``simulate`` has them, without its lanes: a fit needs thousands."""
    launch, known = parameters.launch, {}
    gpu_found = hardware(gpu)
    host = device = launch.prepare_us
    busy = 0.0
    for cost in costs:
        key = (cost.bytes, cost.operations, cost.rate)
        if key not in known:
            known[key] = time_us(cost, gpu_found, parameters.efficiency)
        host += launch.launch_us
        device = max(host + launch.delay_us, device + launch.stream_gap_us) + known[key]
        busy += known[key]
    graph = launch.prepare_us + launch.graph_us + launch.node_us * len(costs) + launch.delay_us + busy
    graph += launch.graph_gap_us * (len(costs) - 1)
    return (device + launch.finish_us) / 1e3, (graph + launch.finish_us) / 1e3


def loss(rows: list[Priced], parameters: EngineParameters) -> float:
    """Sum of the squared logarithms of simulated over published, eager and graph."""
    total = 0.0
    for row, costs in rows:
        eager, graph = step_ms(costs, row.gpu, parameters)
        total += math.log(eager / row.eager_ms) ** 2 + math.log(graph / row.graph_ms) ** 2
    return total


def fit(rows: list[Priced], parameters: EngineParameters, names: list[str]) -> EngineParameters:
    """Search one parameter at a time, in steps that become smaller."""
    best = parameters.with_fitted({name: START[name] for name in names})
    least, step = loss(rows, best), 0.5
    while step > 0.002:
        moved = False
        for name in names:
            for factor in (1 + step, 1 / (1 + step)):
                value = min(best.fitted[name] * factor, LARGEST.get(name, math.inf))
                tried = best.with_fitted({**best.fitted, name: value})
                found = loss(rows, tried)
                if found < least - 1e-9:
                    best, least, moved = tried, found, True
        if not moved:
            step /= 2
    return best


def main() -> None:
    """Fit every engine and write the file."""
    data = json.loads(DATA.read_text(encoding="utf-8"))
    for name, raw in data["engines"].items():
        unfitted, names = engine_parameters(name), list(raw["fitted"])
        own = [(row, row.costs(unfitted.fusion)) for row in published_rows() if row.engine == name]
        if not names:
            continue
        parameters = fit(own, unfitted, names)
        raw["fitted"] = {key: float(f"{value:.4g}") for key, value in parameters.fitted.items()}
        print(name, raw["fitted"], flush=True)
        for row, costs in own:
            found = compare(row, parameters)  # the lanes say the same
            assert math.isclose(found.eager.step_us / 1e3, step_ms(costs, row.gpu, parameters)[0])
            assert math.isclose(found.graph.step_us / 1e3, step_ms(costs, row.gpu, parameters)[1])
            others = fit([other for other in own if other[0] is not row], unfitted, names)
            predicted = [round(ms, 3) for ms in step_ms(costs, row.gpu, others)]
            next(item for item in data["rows"] if item["id"] == row.id)["left_out_ms"] = predicted
            print(f"  {row.id:28} published {row.eager_ms}, {row.graph_ms}; from the others {predicted}", flush=True)
    DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
