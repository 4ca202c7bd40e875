"""Host lane and device lane."""

from itertools import pairwise

import pytest

from onelaunch.timeline import HARDWARE, KernelCost, LaunchCosts, Step, lay_out, simulate, speedup
from onelaunch.timeline.simulate import Mode

PLAIN = LaunchCosts(launch_us=5, graph_us=8, stream_gap_us=0, graph_gap_us=0)
SHORT, LONG = [("short", 2.0)] * 100, [("long", 50.0)] * 100


def check(step: Step) -> None:
    """What must hold of every step: lanes in order, no overlap, no kernel before its launch."""
    for lane in (step.host, step.device):
        assert all(before.end_us <= after.start_us + 1e-9 for before, after in pairwise(lane))
    launched = {span.kernel: span.end_us for span in step.host if span.name == "launch"}
    assert all(span.start_us >= launched.get(span.kernel, 0) for span in step.device)
    assert step.step_us >= step.busy_us


def test_short_kernels_are_bound_by_the_launches() -> None:
    step = lay_out(SHORT, launch=PLAIN)
    check(step)
    assert step.step_us == 100 * 5 + 2
    assert step.launch_bound
    assert step.busy_share == pytest.approx(200 / 502)
    assert len(step.gaps) == 99
    assert step.gap_us == pytest.approx(99 * 3)


def test_long_kernels_hide_the_launches() -> None:
    step = lay_out(LONG, launch=PLAIN)
    check(step)
    assert step.step_us == 5 + 100 * 50
    assert not step.launch_bound
    assert not step.gaps
    assert step.host_waits_us == step.step_us - 500


def test_a_graph_is_launched_once() -> None:
    step = lay_out(SHORT, "graph", launch=LaunchCosts(graph_us=8, node_us=0.1, graph_gap_us=0.5))
    check(step)
    assert step.step_us == pytest.approx(8 + 10 + 200 + 99 * 0.5)
    assert speedup(lay_out(SHORT, launch=PLAIN), step) > 1.8
    assert speedup(lay_out(LONG, launch=PLAIN), lay_out(LONG, "graph", launch=PLAIN)) == pytest.approx(1, abs=0.01)


def test_piecewise_launches_attention_alone_and_the_rest_as_graphs() -> None:
    times = [("a", 2.0), ("b", 2.0), ("attention", 2.0), ("c", 2.0), ("attention", 2.0), ("d", 2.0)]
    step = lay_out(times, "piecewise", launch=PLAIN, eager=[2, 4])
    check(step)
    assert [span.name for span in step.host] == [
        "graph launch",
        "launch",
        "graph launch",
        "launch",
        "graph launch",
        "wait",
    ]
    assert lay_out(times, "piecewise", launch=PLAIN).host == lay_out(times, "graph", launch=PLAIN).host


def test_a_full_queue_stops_the_host() -> None:
    free = lay_out(LONG, launch=PLAIN)
    short = lay_out(LONG, launch=LaunchCosts(launch_us=5, stream_gap_us=0, queue=10))
    check(short)
    assert short.step_us == free.step_us
    launches = [span.end_us for span in short.host if span.name == "launch"]
    # The 11th launch needs the place of the first kernel, which it left when it began to run.
    starts = [span.start_us for span in short.device]
    assert all(
        end == max(start + 5, before + 5)
        for end, start, before in zip(launches[10:], starts, launches[9:], strict=False)
    )
    assert launches[-1] > 4000 > 500 == [span.end_us for span in free.host if span.name == "launch"][-1]


def test_host_work_before_and_after_counts_unless_it_overlaps() -> None:
    launch = LaunchCosts(launch_us=5, prepare_us=300, finish_us=100, stream_gap_us=0)
    serial, overlapped = lay_out(LONG, launch=launch), lay_out(LONG, launch=launch, overlap=True)
    check(serial)
    assert serial.step_us == 300 + 5 + 5000 + 100
    assert overlapped.step_us == 5000
    assert lay_out(SHORT, launch=launch, overlap=True).step_us == 300 + 500 + 100


@pytest.mark.parametrize("mode", ["eager", "graph", "piecewise"])
@pytest.mark.parametrize("gpu", HARDWARE)
def test_a_faster_launch_never_makes_a_step_slower(mode: Mode, gpu: str) -> None:
    kernels = [KernelCost("m", "matmul", 10**6 * n, 0, "fp16") for n in (1, 30, 2)] + [
        KernelCost("attention", "attention", 10**5, 0, "fp16")
    ]
    slow, fast = (
        simulate(kernels * 20, gpu, mode, launch=LaunchCosts(launch_us=us, graph_us=us)) for us in (20.0, 2.0)
    )
    check(slow)
    check(fast)
    assert fast.step_us <= slow.step_us


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one kernel"):
        lay_out([])
    with pytest.raises(ValueError, match="piecewise"):
        lay_out(SHORT, "replay")  # type: ignore[arg-type]
    for wrong in ({"queue": 0}, {"launch_us": -1.0}, {"node_us": float("nan")}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            LaunchCosts(**wrong)
    with pytest.raises(TypeError, match="lay_out"):
        simulate([1.0, 2.0], "H100")  # type: ignore[list-item]
