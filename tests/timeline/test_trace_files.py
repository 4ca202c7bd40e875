"""Files that are no trace, or only in part, get one sentence; a large one does not fill the memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from onelaunch import cli
from onelaunch.timeline import trace_reader
from onelaunch.timeline.chrome import ChromeTrace
from onelaunch.timeline.trace import TraceError, TruncatedTraceError, open_trace
from onelaunch.timeline.trace_events import read
from onelaunch.timeline.trace_reader import TraceFile


def small(kernels: int = 20) -> ChromeTrace:
    trace = ChromeTrace("Simulated")
    for number in range(kernels):
        trace.host('aten::ad\\d "é" ]}', 10.0 * number, 10.0 * number + 5)
        trace.work(
            'kernel<{["]}>',
            10.0 * number + 5,
            10.0 * number + 7,
            trace.call("cudaLaunchKernel", 10.0 * number, 10.0 * number + 4),
        )
    return trace


def whole(kernels: int = 20) -> bytes:
    return json.dumps(small(kernels).as_dict()).encode()


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_events_are_the_same_however_the_text_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, indent: int | None
) -> None:
    monkeypatch.setattr(trace_reader, "CHUNK", chunk)
    made = small(5).as_dict()
    path = tmp_path / "t.json"
    path.write_text(json.dumps(made, indent=indent, ensure_ascii=False), encoding="utf-8")
    file = TraceFile(path)
    assert list(file) == made["traceEvents"]
    assert file.metadata == {key: value for key, value in made.items() if key != "traceEvents"}


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t"])
@pytest.mark.parametrize("packed", [True, False])
def test_packed_or_not_is_seen_from_the_file_and_not_from_its_name(tmp_path: Path, name: str, packed: bool) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(whole()) if packed else whole())
    assert open_trace(path).devices[0].whole.kernels == 20


def test_the_bare_array_of_events_is_a_trace_too(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(small().events))
    assert open_trace(path).devices[0].whole.kernels == 20


def test_what_stands_behind_the_events_is_read(tmp_path: Path) -> None:
    made = {**small().as_dict(), "distributedInfo": {"rank": 3, "world_size": 8}}
    path = tmp_path / "t.json"
    path.write_text(json.dumps(made))
    profile = read(path)
    assert (profile.rank, profile.world_size, profile.hardware) == (3, 8, {"0": "Simulated"})


def test_a_cut_file_says_how_far_it_was_read_wherever_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    text = whole(3)
    for end in range(1, len(text) - 1, 37):
        path.write_bytes(text[:end])
        with pytest.raises(TruncatedTraceError, match=r"is cut off.*after \d+ events.*Read so far: \d+ kernels"):
            read(path)


def test_a_cut_packed_file_says_so_too(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    text = gzip.compress(whole(500))
    for end in (12, len(text) // 2, len(text) - 4):
        path.write_bytes(text[:end])
        with pytest.raises(TruncatedTraceError, match="is cut off"):
            read(path)


NO_TRACE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing.json": (lambda path: None, "there is no file"),
    "folder.json": (lambda path: path.mkdir(), "is a folder"),
    "empty.json": (lambda path: path.touch(), "is empty"),
    "empty.json.gz": (lambda path: path.write_bytes(gzip.compress(b"")), "is cut off"),
    "text.json": (lambda path: path.write_text("step,ms\n1,2\n"), "a text that is no JSON"),
    "not_packed.json.gz": (lambda path: path.write_text("hello"), "although its name ends in .gz"),
    "binary.json": (lambda path: path.write_bytes(bytes(range(256)) * 20), "a binary file"),
    "archive.json": (lambda path: path.write_bytes(b"PK\x03\x04" + bytes(100)), "a zip archive"),
    "nsys.json": (lambda path: path.write_bytes(b"SQLite format 3\x00" + bytes(100)), "Nsight"),
    "foreign.json": (lambda path: path.write_text('{"cells": [1, 2], "nbformat": 4}'), "has no traceEvents"),
    "number.json": (lambda path: path.write_text("17"), "a text that is no JSON"),
    "list.json": (lambda path: path.write_text("[1, 2, 3]"), "not of torch.profiler"),
    "no_events.json": (lambda path: path.write_text('{"traceEvents": []}'), "not of torch.profiler"),
    "odd_events.json": (lambda path: path.write_text('{"traceEvents": 3}'), "not of torch.profiler|no traceEvents"),
    "wrong.json": (lambda path: path.write_text('{"traceEvents": [{"a": nope}]}' + " " * 200), "not valid JSON"),
    "wrong_between.json": (lambda path: path.write_text('{"traceEvents": [{} {}]}' + " " * 200), "not valid JSON"),
    "damaged.json.gz": (lambda path: path.write_bytes(_damaged()), "is damaged"),
    "cpu.json": (lambda path: path.write_text(json.dumps(_cpu_only())), "of the CPU alone: 2 operators"),
}


def test_a_foreign_file_with_one_huge_entry_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_reader, "CHUNK", 1 << 10)
    monkeypatch.setattr(trace_reader, "LONGEST", 1 << 16)
    path = tmp_path / "huge.json"
    path.write_text(json.dumps({"weights": list(range(100_000)), "traceEvents": []}))
    with pytest.raises(TraceError, match="no trace: behind 0 events stands an entry"):
        open_trace(path)


def _damaged() -> bytes:
    packed = bytearray(gzip.compress(whole(2000)))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    return bytes(packed)


def _cpu_only() -> dict[str, object]:
    trace = ChromeTrace()
    trace.host("aten::mm", 0, 5)
    trace.host("aten::add", 5, 9)
    return trace.as_dict()


@pytest.mark.parametrize("name", NO_TRACE)
def test_what_is_no_trace_gets_one_sentence_and_status_2(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make, said = NO_TRACE[name]
    path = tmp_path / name
    make(path)
    with pytest.raises(TraceError, match=said):
        open_trace(path)
    assert cli.main(["trace", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert name in printed.err
    assert list(tmp_path.glob("*.html")) == []


def test_a_profile_of_this_cpu_is_told_apart_from_a_wrong_file(tmp_path: Path) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        torch.ones(3) + 1
    path = tmp_path / "cpu.json"
    profiled.export_chrome_trace(str(path))
    with pytest.raises(TraceError, match=r"of the CPU alone: \d+ operators"):
        open_trace(path)


def test_the_categories_of_older_profilers_are_known(tmp_path: Path) -> None:
    older = {"kernel": "Kernel", "cuda_runtime": "Runtime", "cpu_op": "Operator", "gpu_memcpy": "Memcpy"}
    made = small(4)
    call = made.call("cudaMemcpyAsync", 50, 51)
    made.work("Memcpy DtoH (Device -> Pinned)", 52, 53, call, kind="gpu_memcpy")
    for event in made.events:
        event["cat"] = older[event["cat"]]
    device = open_trace(made.save(tmp_path / "t.json")).devices[0]
    assert (device.whole.kernels, device.whole.copies, device.attributed) == (4, 1, True)
    assert len(open_trace(tmp_path / "t.json").launches) == 1


def test_spans_that_make_no_sense_are_left_out(tmp_path: Path) -> None:
    made = small(4)
    made.events += [
        {"ph": "X", "cat": "kernel", "name": "no time", "pid": 0, "tid": 7},
        {"ph": "X", "cat": "kernel", "name": "time is text", "ts": "now", "dur": 1},
        {"ph": "X", "cat": "kernel", "ts": 3, "dur": 1, "args": {"device": [0]}},
        {"ph": "X", "cat": ["kernel"], "ts": 3},
        {"ph": "X", "cat": "kernel", "name": "backwards", "pid": 0, "tid": 7, "ts": 5, "dur": -4, "args": None},
    ]
    made.events.append({"ph": "i", "cat": "kernel", "ts": 1e12})
    assert open_trace(made.save(tmp_path / "t.json")).devices[0].whole.kernels == 5


def test_reading_takes_a_small_part_of_the_file_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_reader, "CHUNK", 1 << 16)
    trace = small(6000)
    for event in trace.events:  # as long as a real one: with shapes, strides and the like
        event["args"]["Input Dims"] = [[1, 512], [], [64, 1024, 8], []] * 4
    path = trace.save(tmp_path / "t.json")
    del trace
    tracemalloc.start()
    try:
        profile = read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(profile.device) == 6000
    assert path.stat().st_size > 4e6
    assert peak < 0.5 * path.stat().st_size
