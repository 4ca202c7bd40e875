"""What one operation costs the host on this machine, and where that time goes; with a GPU, also what launching costs.

``measure()`` times an addition of growing size. What it would take at size zero, where the line through the times
begins, is what the host pays to ask for it. The same addition asked for in other ways, and replayed from a tape, shows
how much of that is PyTorch's dispatch, Python, and a module around it. ``onelaunch bench`` prints it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import torch

from onelaunch.machine import in_words, machine
from onelaunch.timeline import host_costs
from onelaunch.timeline.fit import CONFIDENCE, Estimate, Line, digits, resampled_medians
from onelaunch.timeline.gpu_costs import Gpu, GpuCosts
from onelaunch.timeline.simulate import LaunchCosts
from onelaunch.timeline.timing import check_budget, take_rounds

PLAYERS = {"native": "from a loop in C++", "script": "from TorchScript", "python": "from a loop in Python"}


@dataclass(frozen=True)
class Costs:
    """What was measured, in microseconds with 95% intervals (see ``fit``), and on what.

    operation: ``a + b`` against the number of elements. calls: a way to ask for it -> its time, with one element.
    replay: executor -> a tape of such additions, against the number of kernels. parts: what ``module(a, b)`` with
    ``host_costs.ELEMENTS`` elements consists of, innermost first; they add up to it. gpu: None where it was not
    measured. not_measured: what is missing -> why.
    """

    hardware: Mapping[str, Any]
    versions: Mapping[str, Any]
    date: str
    rounds: int
    operation: Line
    calls: Mapping[str, Estimate]
    replay: Mapping[str, Line]
    parts: Mapping[str, Estimate]
    gpu: GpuCosts | None
    not_measured: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def to_json(self) -> str:
        """The measurement as JSON, with hardware, versions and date."""
        return json.dumps(self.as_dict(), indent=1)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Costs:
        """What ``as_dict`` gave. Raises ValueError for anything else."""
        try:
            gpu = saved["gpu"]
            return cls(
                **{name: saved[name] for name in ("hardware", "versions", "date", "rounds", "not_measured")},
                operation=_line(saved["operation"]),
                calls=_estimates(saved["calls"]),
                replay={name: _line(line) for name, line in saved["replay"].items()},
                parts=_estimates(saved["parts"]),
                gpu=None
                if gpu is None
                else GpuCosts(
                    _estimates(gpu["calls"]),
                    Estimate(**gpu["wait"]),
                    _line(gpu["graph_launch"]),
                    _line(gpu["graph_run"]),
                    None if gpu["stream_run"] is None else Estimate(**gpu["stream_run"]),
                ),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"this is not what `onelaunch bench --json` writes ({type(error).__name__}: {error}). Measure again."
            ) from error

    @classmethod
    def from_json(cls, text: str) -> Costs:
        """What ``to_json`` gave. Raises ValueError for anything else."""
        saved = json.loads(text)
        if not isinstance(saved, dict):
            raise ValueError(f"this is not what `onelaunch bench --json` writes: found a {type(saved).__name__}")
        return cls.from_dict(saved)

    def launch_costs(self) -> LaunchCosts:
        """What ``simulate`` takes for this GPU: an eager launch is the call of a module, which is what models do.

        What is not measured keeps its default: the gaps between kernels, and what a step prepares and finishes.
        Raises ValueError where no GPU was measured.
        """
        if self.gpu is None:
            raise ValueError(
                f"launch costs of a GPU were asked for, and the GPU was {self._missing('gpu')}. "
                "Run `onelaunch bench --json` on a machine with one."
            )
        return LaunchCosts(
            launch_us=self.gpu.calls["module(a, b)"].us,
            graph_us=max(self.gpu.graph_launch.start.us, 0.0),
            node_us=max(self.gpu.graph_launch.each.us, 0.0),  # about a nanosecond on new drivers, and noise around it
        )

    def rows(self) -> Iterator[tuple[str, str, Estimate | str]]:
        """Section, name, and the time or why there is none."""
        section = "One operation, a + b"
        yield section, "at size zero", self.operation.start
        yield section, "for each thousand elements more", self.operation.each.times(1000)
        section = "Ways to ask for it, with one element"
        for name, time in self.calls.items():
            yield section, name, time
        section = "Replayed from a tape on the CPU, for each kernel"
        for name, words in PLAYERS.items():
            yield section, words, self.replay[name].each if name in self.replay else self._missing(name)
        section = "Launching on the GPU: the host's time"
        if self.gpu is None:
            yield section, "everything", self._missing("gpu")
            return
        for name, time in self.gpu.calls.items():
            yield section, name, time
        yield section, "torch.add, and wait", self.gpu.wait
        yield section, "a graph, whatever its size", self.gpu.graph_launch.start
        yield section, "for each node of a graph", self.gpu.graph_launch.each
        section = "An empty kernel on the GPU: the device's time, with the gap before the next"
        yield section, "in a stream", self.gpu.stream_run or self._missing("gpu stream")
        yield section, "in a graph", self.gpu.graph_run.each

    @property
    def machine(self) -> str:
        """Hardware, versions and date in one line."""
        return in_words(self.as_dict(), ("torch",))

    def _missing(self, name: str) -> str:
        return f"not measured: {self.not_measured.get(name, 'no reason is known')}"

    def __str__(self) -> str:
        width = max(len(name) for _, name, _ in self.rows())
        lines = [f"What asking for an operation costs. Measured on {self.machine}.", ""]
        lines.append(f"{'':{width + 2}}  {'µs':>8}  {CONFIDENCE:.0%} interval")
        last = ""
        for section, name, time in self.rows():
            if section != last:
                lines.append(section)
                last = section
            if isinstance(time, str):
                lines.append(f"  {name:{width}}  {time}")
            else:
                lines.append(f"  {name:{width}}  {digits(time.us):>8}  {_interval(time)}")
        return "\n".join([*lines, "", self._how()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        body, last = [], ""
        for section, name, time in self.rows():
            if section != last:
                body.append(f'<tr><th colspan="3" scope="colgroup" style="text-align:left">{escape(section)}</th></tr>')
                last = section
            cells = (
                f'<td colspan="2" style="text-align:left">{escape(time)}</td>'
                if isinstance(time, str)
                else f"<td>{digits(time.us)}</td><td>{_interval(time)}</td>"
            )
            body.append(f'<tr><td style="text-align:left">{escape(name)}</td>{cells}</tr>')
        head = f'<tr><td></td><th scope="col">µs</th><th scope="col">{CONFIDENCE:.0%} interval</th></tr>'
        return (
            f"<p>What asking for an operation costs. Measured on {escape(self.machine)}.</p>"
            f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table><p>{escape(self._how())}</p>"
        )

    def _how(self) -> str:
        off = f"{self.operation.misfit:.0%}"
        return (
            f"Medians of {self.rounds} rounds, intervals from a bootstrap over the rounds. "
            f"The times of a + b lie within {off} of their line."
        )


def measure(budget_s: float = 20.0, device: str | None = None) -> Costs:
    """Measure for about ``budget_s`` seconds; a second is enough for a first look, and a quiet machine for the rest.

    device: "cpu" leaves a GPU out, "cuda" insists on one, None takes it where there is one. The host's part is always
    measured. Raises ValueError for a budget that makes no sense or a device that is not there.
    """
    check_budget(budget_s)
    not_measured = {}
    gpu = None
    if device not in (None, "cpu", "cuda"):
        raise ValueError(f"device must be 'cpu', 'cuda' or None; found {device!r}")
    if device != "cpu" and torch.cuda.is_available():
        gpu = Gpu()
    elif device == "cuda":
        raise ValueError("device='cuda' was asked for, and torch finds no GPU here. Leave it out to measure the host.")
    else:
        not_measured["gpu"] = "it was left out" if device == "cpu" and torch.cuda.is_available() else "no GPU here"
    players = host_costs.players()
    if "native" not in players:
        not_measured["native"] = "not compiled; `onelaunch compile` does"
    subjects = host_costs.host_subjects()
    if gpu is not None:
        subjects |= gpu.subjects()
        if gpu.hold is None:
            not_measured["gpu stream"] = "this torch cannot hold the device (torch.cuda._sleep)"
    table = take_rounds(subjects, budget_s)
    medians = dict(zip(subjects, resampled_medians(table).T, strict=True))
    return Costs(
        **machine(),
        rounds=len(table),
        operation=host_costs.operation(medians),
        calls=host_costs.calls(medians),
        replay={name: host_costs.replay(medians, name) for name in players},
        parts=host_costs.parts(medians, players[0]),
        gpu=None if gpu is None else gpu.costs(medians),
        not_measured=not_measured,
    )


def _estimates(saved: Mapping[str, Any]) -> dict[str, Estimate]:
    return {name: Estimate(**value) for name, value in saved.items()}


def _line(saved: Mapping[str, Any]) -> Line:
    points = tuple((x, us) for x, us in saved["points"])
    return Line(**{**saved, "start": Estimate(**saved["start"]), "each": Estimate(**saved["each"]), "points": points})


def _interval(time: Estimate) -> str:
    return f"{digits(time.low_us)} to {digits(time.high_us)}"
