"""Traces whose answer is known: each cause of a wait, graphs, streams, devices and steps, and four real profiles."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from onelaunch.timeline.chrome import ChromeTrace
from onelaunch.timeline.trace import Trace, open_trace
from onelaunch.timeline.trace_report import as_text

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"


def opened(trace: ChromeTrace, folder: Path) -> Trace:
    return open_trace(trace.save(folder / "made.json"))


def eager(
    trace: ChromeTrace,
    kernels: int,
    start: float = 0.0,
    launch: float = 5.0,
    kernel: float = 2.0,
    gap: float = 0.0,
    names: list[str] | None = None,
    **where: int,
) -> tuple[float, float]:
    """Launch kernels one after the other, ``gap`` of Python between; each runs 1 µs after its launch returned, or when
    the one before is done. Returns the time of the host and of the device."""
    now = free = start
    for number in range(kernels):
        call = trace.call("cudaLaunchKernel", now, now + launch)
        now += launch
        begin = max(now + 1, free)
        trace.work((names or ["k"])[number % len(names or ["k"])], begin, begin + kernel, call, **where)
        free = begin + kernel
        now += gap
    return now, free


def test_where_launches_set_the_pace_the_device_waits_for_the_difference(tmp_path: Path) -> None:
    trace = ChromeTrace("Simulated")
    eager(trace, 100, launch=5, kernel=2, gap=1)
    whole = opened(trace, tmp_path).devices[0].whole
    assert whole.kernels == 100
    assert whole.span_us == pytest.approx(99 * 6 + 2)
    assert whole.busy_us == pytest.approx(200)
    # Of every 6 µs the device computes 2, waits 3 until the next call returns, and 1 until the launch has arrived.
    assert whole.launch_us == pytest.approx(99 * 4)
    assert whole.queue_us == pytest.approx(0)
    assert whole.sync_us == whole.graph_us == 0
    assert whole.saving_us == pytest.approx(99 * 4)
    assert whole.busy_us + whole.saving_us == pytest.approx(whole.span_us)


def test_where_kernels_set_the_pace_nothing_is_to_be_saved(tmp_path: Path) -> None:
    trace = ChromeTrace()
    eager(trace, 50, launch=5, kernel=20)
    whole = opened(trace, tmp_path).devices[0].whole
    assert whole.share("busy") == pytest.approx(1)
    assert whole.saving_us == 0


def test_a_wait_for_a_synchronizing_thread_is_no_launch(tmp_path: Path) -> None:
    trace = ChromeTrace()
    trace.work("a", 0, 10, trace.call("cudaLaunchKernel", -5, -1))
    trace.call("cudaStreamSynchronize", 1, 30)
    trace.call("cudaStreamSynchronize", 2, 300, thread=2)  # of another thread: nobody's fault here
    trace.work("b", 50, 60, trace.call("cudaLaunchKernel", 40, 45))
    device = opened(trace, tmp_path).devices[0]
    # 10 to 50: until 30 the thread synchronizes, until 45 it works and launches, until 50 the launch is on its way.
    assert (device.whole.sync_us, device.whole.launch_us, device.whole.queue_us) == (20, 20, 0)
    assert device.whole.saving_us == 20


def test_what_lay_in_the_queue_before_the_device_was_free_is_no_late_launch(tmp_path: Path) -> None:
    trace = ChromeTrace()
    for number in range(9):  # the device waits for each, and begins it 3 µs after the call
        trace.work(
            "late", 20 * number + 8, 20 * number + 10, trace.call("cudaLaunchKernel", 20 * number, 20 * number + 5)
        )
    first, second = trace.call("cudaLaunchKernel", 200, 204), trace.call("cudaLaunchKernel", 204, 208)
    trace.work("long", 207, 300, first)
    trace.work("queued", 302, 310, second)
    third = trace.call("cudaLaunchKernel", 304, 308)  # returns 2 µs before the device is free, and takes 3 to arrive
    trace.work("nearly late", 312, 320, third)
    device = opened(trace, tmp_path).devices[0]
    assert device.gaps.arrival_us == 3
    assert device.gaps.launch.tolist()[-3:] == [207 - 170, 0, 1]
    assert device.gaps.queue.tolist()[-3:] == [0, 2, 1]


def test_a_long_wait_of_what_was_launched_long_ago_is_not_a_launch_either(tmp_path: Path) -> None:
    trace = ChromeTrace()
    trace.work("a", 0, 10, trace.call("cudaLaunchKernel", -5, -1))
    trace.work("b", 500_000, 500_010, trace.call("hipLaunchKernel", 5, 9))
    whole = opened(trace, tmp_path).devices[0].whole
    assert whole.queue_us == 500_000 - 10
    assert whole.saving_us == 20  # at most, what a launch takes to arrive
    assert whole.active_us == pytest.approx(40)


@pytest.mark.parametrize("name", ["cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch"])
def test_what_is_in_a_graph_already_saves_nothing(tmp_path: Path, name: str) -> None:
    trace = ChromeTrace()
    call = trace.call(name, 0, 50)
    for number in range(10):  # a kernel each 10 µs, from before the call returns
        trace.work("k", 20 + 10 * number, 26 + 10 * number, call)
    seen = opened(trace, tmp_path)
    whole = seen.devices[0].whole
    assert whole.graph_launches == 1
    assert [(each.name, each.calls) for each in seen.graph_launches] == [(name, 1)]
    assert seen.launches == []
    assert whole.graph_us == pytest.approx(9 * 4)
    assert whole.saving_us == 0
    assert whole.launch_us == 0


def test_the_wait_between_two_pieces_counts_as_a_larger_graph_would_save_it(tmp_path: Path) -> None:
    trace = ChromeTrace()
    trace.work("a", 10, 20, trace.call("cudaGraphLaunch", 0, 5))
    trace.work("b", 50, 60, trace.call("cudaGraphLaunch", 40, 45))
    whole = opened(trace, tmp_path).devices[0].whole
    assert whole.graph_launches == 2
    assert whole.saving_us == 30


@pytest.mark.parametrize(
    "name",
    [
        "cudaLaunchKernel",
        "cudaLaunchKernelExC",
        "cudaLaunchCooperativeKernel",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "hipLaunchKernel",
        "hipModuleLaunchKernel",
        "hipExtModuleLaunchKernel",
        "hipExtLaunchKernel",
    ],
)
def test_every_name_of_a_launch_is_known(tmp_path: Path, name: str) -> None:
    trace = ChromeTrace()
    trace.work("k", 5, 6, trace.call(name, 0, 4))
    trace.call("cudaFuncSetAttribute", 10, 11)
    trace.call("cudaStreamIsCapturing", 11, 12)
    assert [(each.name, each.median_us) for each in opened(trace, tmp_path).launches] == [(name, 4)]


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("cudaDeviceSynchronize", True),
        ("cudaStreamSynchronize", True),
        ("hipEventSynchronize", True),
        ("cudaMemcpy", True),
        ("cuMemcpyDtoH_v2", True),
        ("hipMemcpyWithStream", True),
        ("cudaMemcpyAsync", False),
        ("cudaMemcpy2DAsync", False),
        ("cuMemcpyDtoHAsync_v2", False),
        ("cudaEventQuery", False),
    ],
)
def test_it_is_known_which_calls_wait_for_the_device(tmp_path: Path, name: str, waits: bool) -> None:
    trace = ChromeTrace()
    trace.work("a", 0, 10, trace.call("cudaLaunchKernel", -5, -1))
    trace.call(name, 12, 30)
    trace.work("b", 50, 60, trace.call("cudaLaunchKernel", 40, 45))
    assert opened(trace, tmp_path).devices[0].whole.sync_us == (18 if waits else 0)


def test_streams_that_overlap_are_busy_once(tmp_path: Path) -> None:
    trace = ChromeTrace()
    call = trace.call("cudaLaunchKernel", -10, -9)
    trace.work("long", 0, 100, call, stream=7)
    for number in range(9):
        trace.work("short", 10 * number, 10 * number + 5, call, stream=20)
    trace.work("copy", 95, 110, call, stream=9, kind="gpu_memcpy")
    device = opened(trace, tmp_path).devices[0]
    assert device.streams == 3
    assert device.whole.busy_us == 110
    assert (device.whole.kernels, device.whole.copies) == (10, 1)
    assert len(device.gaps) == 0


def test_devices_are_told_apart_and_the_busiest_comes_first(tmp_path: Path) -> None:
    trace = ChromeTrace("A")
    eager(trace, 3, device=0)
    eager(trace, 30, device=3, kernel=10)
    devices = opened(trace, tmp_path).devices
    assert [(device.number, device.whole.kernels) for device in devices] == [("3", 30), ("0", 3)]
    assert devices[0].whole.share("busy") == pytest.approx(1)
    assert devices[1].whole.share("busy") < 0.6


def decode(trace: ChromeTrace, steps: int, layers: int = 6, mark: str = "", read_back: bool = True) -> None:
    """Steps of some layers, with an embedding before and a choice of the token behind, and one that waits for long."""
    now = 0.0
    for number in range(steps):
        begin = now
        names = ["embed", *["norm", "matmul", "attention"] * layers, "argmax"]
        now, free = eager(trace, len(names), now, launch=5, kernel=2, names=names)
        if read_back:
            trace.work(
                "Memcpy DtoH (Device -> Pinned)",
                now + 6,
                now + 7,
                trace.call("cudaMemcpyAsync", now, now + 5),
                kind="gpu_memcpy",
            )
            now += 5
            trace.call("cudaStreamSynchronize", now, free + 10)
            now = free + 10
        if mark.startswith("nn.Module"):
            trace.host(mark, begin, now, "python_function")
            trace.host("nn.Module: Layer_0", begin, begin + 20, "python_function")
        elif mark:
            trace.host(f"{mark}{number}", begin, now, "user_annotation")
        now += 30
        if number == steps // 2:
            trace.call("cudaDeviceSynchronize", now, now + 463_000)
            now += 463_000


@pytest.mark.parametrize("mark", ["ProfilerStep#", "execute_32_context_", "nn.Module: LlamaForCausalLM_0", ""])
def test_steps_are_found_by_their_marks_or_by_what_repeats(tmp_path: Path, mark: str) -> None:
    trace = ChromeTrace()
    decode(trace, 8, mark=mark)
    steps = opened(trace, tmp_path).devices[0].steps
    assert steps is not None
    assert steps.are_steps
    assert len(steps.all) == 8
    assert {each.kernels for each in steps.all} == {20}
    # 20 launches of 5 µs, until the last kernel 3, until the host knows 10, and 30 of Python; however long one waited.
    assert steps.median.span_us == pytest.approx(20 * 5 + 3 + 10 + 30)
    assert steps.median.busy_us == pytest.approx(20 * 2 + 1)
    # The wait for the next step's first kernel is not the graph's to save.
    assert steps.median.saving_us == pytest.approx(20 * 3)


def test_a_long_synchronization_between_steps_changes_no_bound(tmp_path: Path) -> None:
    trace = ChromeTrace()
    decode(trace, 8, mark="ProfilerStep#")
    device = opened(trace, tmp_path).devices[0]
    assert device.steps is not None
    assert device.whole.span_us > 463_000
    assert device.whole.saving_us == pytest.approx(sum(each.saving_us for each in device.steps.all))
    assert device.whole.active_us < 8 * 150


def test_layers_are_not_called_steps(tmp_path: Path) -> None:
    trace = ChromeTrace()
    decode(trace, 1, layers=24, read_back=False)
    steps = opened(trace, tmp_path).devices[0].steps
    assert steps is not None
    assert not steps.are_steps


def test_work_launched_before_the_profile_began_belongs_to_no_step(tmp_path: Path) -> None:
    trace = ChromeTrace()
    for number in range(5):
        trace.work("before", 10 * number, 10 * number + 9, call=10_000 + number)
    trace.host("ProfilerStep#3", 0, 200, "user_annotation")
    eager(trace, 10, start=60)
    device = opened(trace, tmp_path).devices[0]
    assert device.steps is not None
    assert device.steps.median.kernels == 10
    assert device.whole.kernels == 15


def test_a_number_that_two_launches_share_means_the_one_before(tmp_path: Path) -> None:
    trace = ChromeTrace()
    for start in (0.0, 1000.0):  # as in a file that two traces were merged into
        trace._correlation = 6
        trace.work("k", start + 8, start + 20, trace.call("cudaLaunchKernel", start, start + 5))
    whole = opened(trace, tmp_path).devices[0].whole
    assert whole.queue_us == 0
    assert whole.launch_us == 1000 + 5 - 20 + 3


def test_without_launches_no_wait_has_a_cause(tmp_path: Path) -> None:
    trace = ChromeTrace()
    for number in range(4):
        trace.work("k", 10 * number, 10 * number + 5, call=-1)
    device = opened(trace, tmp_path).devices[0]
    assert not device.attributed
    assert device.whole.share("busy") == pytest.approx(20 / 35)
    assert device.whole.saving_us == 15


def test_the_host_is_named_by_the_innermost_function_operator_and_call(tmp_path: Path) -> None:
    trace = ChromeTrace()
    trace.work("a", 0, 10, trace.call("cudaLaunchKernel", -5, -1))
    trace.host("model.py(3): forward", -10, 100, "python_function")
    trace.host("model.py(9): slow", 5, 90, "python_function")
    trace.host("aten::nonzero", 20, 88)
    trace.host("aten::empty", 50, 51)
    trace.call("cudaStreamSynchronize", 21, 80)
    trace.host("aten::add", 10, 90, thread=2)
    trace.work("b", 95, 100, trace.call("cudaLaunchKernel", 85, 90))
    gap = opened(trace, tmp_path).devices[0].largest[0]
    assert gap.host == ["model.py(9): slow", "aten::nonzero", "cudaStreamSynchronize"]
    assert (gap.next, gap.launched_by) == ("b", "cudaLaunchKernel")


KNOWN = {  # file -> kernels, busy ms, busy share of the whole, graph launches, ms that a graph launch took the host
    "h100_bert_small_launch_bound": (60, 0.309, 0.079, 0, None),
    "h100_qwen_prefill_gpu_bound": (1465, 45.65, 0.919, 0, None),
    "mi300x_vllm_decode_one_graph": (425, 10.72, 0.998, 1, 0.51),
    "mi300x_sglang_decode_one_graph": (555, 9.77, 0.0206, 1, 1.57),
}


@pytest.mark.parametrize("name", KNOWN)
def test_real_traces_give_their_known_answers(name: str) -> None:
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not here: it is no part of this repository")
    kernels, busy_ms, busy, graphs, launch_ms = KNOWN[name]
    trace = open_trace(path)
    whole = trace.devices[0].whole
    assert whole.kernels == kernels
    assert whole.busy_us / 1e3 == pytest.approx(busy_ms, abs=0.005)
    assert whole.share("busy") == pytest.approx(busy, abs=0.0005)
    assert whole.graph_launches == graphs
    assert sum(each.calls for each in trace.graph_launches) == graphs
    if launch_ms is not None:
        assert trace.graph_launches[0].median_us / 1e3 == pytest.approx(launch_ms, abs=0.005)
    parts = [getattr(whole, f"{part}_us") for part in ("busy", "launch", "sync", "queue", "graph")]
    assert sum(parts) == pytest.approx(whole.span_us)
    assert all(a.start_us >= 0 for a in trace.devices[0].largest)
    assert all(a.end_us - a.start_us >= b.end_us - b.start_us for a, b in itertools.pairwise(trace.devices[0].largest))


SAID = {  # in README.md and in chapter 18
    "h100_bert_small_launch_bound": [
        "Launch-bound: the device waits for the next launch for 92.0 % of the time.",
        "A graph would save at most 3.59 ms of 3.90 ms (92.1 %) of the profile",
    ],
    "h100_qwen_prefill_gpu_bound": ["Not launch-bound: the device is busy for 92.0 % of the time."],
    "mi300x_vllm_decode_one_graph": ["A graph would save at most 25.1 µs of 10.74 ms"],
    "mi300x_sglang_decode_one_graph": ["the device is busy for 93.0 % of the 10.51 ms that remain without long waits"],
}


@pytest.mark.parametrize("name", SAID)
def test_what_the_book_says_about_real_traces_is_what_the_report_says(name: str) -> None:
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not here: it is no part of this repository")
    report = " ".join(as_text(open_trace(path)).split())
    for sentence in SAID[name]:
        assert sentence in report


def test_a_real_decode_step_that_waited_half_a_second_is_still_seen_as_busy() -> None:
    path = TRACES / "mi300x_sglang_decode_one_graph.json.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not here: it is no part of this repository")
    whole = open_trace(path).devices[0].whole
    assert whole.span_us > 463_000
    assert whole.active_us < 11_000
    assert whole.busy_us / whole.active_us > 0.9
    assert whole.saving_us < 500
