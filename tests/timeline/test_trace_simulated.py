"""A simulated step, written as a trace and read again, is the same step."""

from __future__ import annotations

from pathlib import Path

import pytest

from onelaunch import viz
from onelaunch.timeline import LaunchCosts, Step, lay_out
from onelaunch.timeline.chrome import ChromeTrace, from_steps
from onelaunch.timeline.simulate import Mode
from onelaunch.timeline.trace import open_trace
from onelaunch.timeline.trace_lanes import as_step

COSTS = LaunchCosts(launch_us=6, graph_us=9, prepare_us=40, finish_us=15, delay_us=1, stream_gap_us=1, graph_gap_us=0.5)
KERNELS = [(name, us) for _ in range(12) for name, us in (("norm", 2.0), ("matmul", 4.0), ("attention", 3.0))]


def step(mode: Mode, slow: float = 1.0, launch: LaunchCosts = COSTS) -> Step:
    times = [(name, us * slow) for name, us in KERNELS]
    return lay_out(times, mode, launch=launch, eager=range(2, len(times), 3))


@pytest.mark.parametrize("mode", ["eager", "graph", "piecewise"])
@pytest.mark.parametrize("slow", [1, 10])
def test_what_was_simulated_is_what_the_trace_says(tmp_path: Path, mode: Mode, slow: float) -> None:
    made = step(mode, slow)
    trace = open_trace(from_steps([made] * 5, "Simulated").save(tmp_path / "t.json.gz"))
    device = trace.devices[0]
    assert device.steps is not None
    median = device.steps.median
    assert len(device.steps.all) == 5
    assert device.hardware == "Simulated"
    assert median.kernels == len(KERNELS)
    assert median.span_us == pytest.approx(made.step_us)
    assert median.busy_us == pytest.approx(made.busy_us)
    graphs = {"eager": 0, "graph": 1, "piecewise": 12}[mode]
    assert median.graph_launches == graphs
    if mode == "graph":
        assert median.saving_us == 0
        assert median.graph_us == pytest.approx(35 * 0.5)


@pytest.mark.parametrize("mode", ["eager", "graph", "piecewise"])
def test_a_step_of_a_trace_is_a_step_of_the_simulator(tmp_path: Path, mode: Mode) -> None:
    made = step(mode)
    read = as_step(open_trace(from_steps([made] * 3).save(tmp_path / "t.json")))
    assert read.mode == mode
    assert read.step_us == pytest.approx(made.step_us)
    assert read.busy_us == pytest.approx(made.busy_us)
    assert [span.name for span in read.device] == [name for name, _ in KERNELS]
    # It begins with its first launch, and not with what the host prepared before.
    launches = [span for span in made.host if "launch" in span.name]
    found = [span for span in read.host if "launch" in span.name]
    assert [span.name for span in found] == [span.name for span in launches]
    assert [span.kernel for span in found if span.name == "launch"] == [
        span.kernel for span in launches if span.name == "launch"
    ]
    for mine, theirs in zip(found, launches, strict=True):
        assert mine.start_us == pytest.approx(theirs.start_us - launches[0].start_us, abs=2e-3)


def test_a_step_of_a_trace_is_drawn_as_a_simulated_one_is(tmp_path: Path) -> None:
    made = step("eager")
    read = as_step(open_trace(from_steps([made] * 3).save(tmp_path / "t.json")))
    figure = viz.step_lanes([read], simulated=False)
    assert figure.alt.startswith("Host and device over the first")
    assert "imulated" not in f"{figure.alt} {figure.caption}"
    assert "simulated step" in viz.step_lanes([made]).alt


def test_the_bound_holds_for_what_the_simulator_says_a_graph_saves(tmp_path: Path) -> None:
    eager, graph = step("eager"), step("graph")
    device = open_trace(from_steps([eager] * 4).save(tmp_path / "t.json")).devices[0]
    assert device.steps is not None
    saved = eager.step_us - graph.step_us
    assert 0 < saved <= device.steps.median.saving_us + COSTS.launch_us


def test_a_host_that_waits_for_a_place_in_the_queue_does_not_synchronize(tmp_path: Path) -> None:
    made = step("eager", slow=10, launch=LaunchCosts(queue=4))
    trace = from_steps([made] * 2)
    assert sum(event["name"] == "Command Buffer Full" for event in trace.events) > 10
    assert sum(event["name"] == "cudaStreamSynchronize" for event in trace.events) == 2
    assert open_trace(trace.save(tmp_path / "t.json")).devices[0].whole.share("busy") > 0.9


def test_streams_that_overlap_share_the_lane(tmp_path: Path) -> None:
    trace = ChromeTrace()
    call = trace.call("cudaLaunchKernel", 0, 5)
    trace.work("a", 10, 30, call, stream=1)
    trace.work("inside", 15, 20, call, stream=2)
    trace.work("b", 25, 40, call, stream=2)
    read = as_step(open_trace(trace.save(tmp_path / "t.json")))
    assert [(span.name, span.start_us, span.end_us) for span in read.device] == [("a", 10, 30), ("b", 30, 40)]


def test_without_launches_there_are_no_two_lanes(tmp_path: Path) -> None:
    trace = ChromeTrace()
    trace.work("a", 0, 5, call=-1)
    with pytest.raises(ValueError, match="no launches"):
        as_step(open_trace(trace.save(tmp_path / "t.json")))


def test_a_span_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(ValueError, match="before it starts"):
        ChromeTrace().host("a", 5, 4)
