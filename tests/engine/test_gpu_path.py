"""What the engine asks of ``torch.cuda``, watched where there is no GPU. Whether a GPU then does it is not shown here.

The recorder is one piece of code for both machines, so its calls can be watched with the emulator behind them.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import pytest
import torch

from onelaunch import LLM, SamplingParams, cuda
from onelaunch.engine import graph as graph_module
from onelaunch.engine import llm as llm_module
from onelaunch.engine.capture import CudaRecorder, GraphPlan, plan_graphs
from onelaunch.engine.engine import pick_dtype
from onelaunch.engine.graph import free_memory

GPU = torch.device("cuda", 1)  # only spoken of, so none is needed
SIX = SamplingParams(max_tokens=6, ignore_eos=True)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the recorder does with streams and graphs, in order; ``onelaunch.cuda`` still does it."""
    log: list[Any] = []

    class Stream(cuda.Stream):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            log.append(("new stream", args))

        def wait_stream(self, stream: Any) -> None:
            log.append(("side waits", stream))
            super().wait_stream(stream)

    class Graph(cuda.graph):  # type: ignore[misc, valid-type]
        def __init__(self, graph: Any, pool: Any = None, stream: Any = None) -> None:
            super().__init__(graph, pool=pool, stream=stream)
            log.append(("capture", pool, stream))

    enter = cuda.stream

    def stream(chosen: Any) -> Any:
        log.append(("warm-up", chosen))
        return enter(chosen)

    for name, value in (("Stream", Stream), ("graph", Graph), ("stream", stream)):
        monkeypatch.setattr(cuda, name, value)
    return log


def test_each_size_is_warmed_up_and_recorded_on_the_recorders_own_stream_into_one_pool(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [[1, 2, 3], [4], [5, 6]]
    with LLM("random:llama", device="cpu") as plain:
        expected = plain.generate(prompts, SIX)

    def as_on_a_gpu(*args: Any, **kwargs: Any) -> GraphPlan:
        return dataclasses.replace(plan_graphs(*args, **kwargs), mode="cuda")

    monkeypatch.setattr(llm_module, "plan_graphs", as_on_a_gpu)
    with LLM("random:llama", device="cpu", cuda_graph_bs=[1, 2, 4], max_running_req=4) as llm:
        runner = llm.engine.runner
        assert runner.mode == "cuda"
        assert isinstance(runner.recorder, CudaRecorder)
        assert runner.recorder.api is cuda
        own, pool = runner.recorder.stream, runner.graph_map[4].pool()
        assert own != cuda.default_stream()
        assert calls[0] == ("new stream", (torch.device("cpu"),))
        per_size = [("side waits", cuda.default_stream()), ("warm-up", own)]
        assert calls[1:] == [
            *[*per_size, ("capture", None, own)],
            *[*per_size, ("capture", pool, own)] * 2,
        ]
        assert llm.generate(prompts, SIX) == expected
        assert runner.stats.steps == {(3, 4): 5}


def test_the_main_stream_waits_for_the_warm_up() -> None:
    waited = []

    class Main:
        def wait_stream(self, stream: Any) -> None:
            waited.append(stream)

    recorder = CudaRecorder("tape", torch.device("cpu"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder.stream, "wait_stream", lambda stream: waited.append("side"), raising=False)
        patch.setattr(recorder.api, "current_stream", lambda device=None: Main())
        patch.setattr(recorder.api, "stream", lambda chosen: __import__("contextlib").nullcontext())
        recorder.warm_up(lambda: waited.append("step"))
    assert waited == ["side", "step", recorder.stream]


def test_memory_is_measured_after_what_pytorch_only_keeps_was_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: asked.append(("synchronize", device)))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: asked.append("empty_cache"))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: asked.append(("free", device)) or (7, 9))
    assert free_memory(GPU) == 7
    assert asked == [("synchronize", GPU), "empty_cache", ("free", GPU)]
    assert free_memory(torch.device("cpu")) == 0


def test_what_recording_took_on_a_gpu_is_the_difference(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    free = iter([10 << 20, 4 << 20])
    monkeypatch.setattr(graph_module, "free_memory", lambda device: next(free))
    monkeypatch.setattr(graph_module, "PoolHandle", type("None of them", (), {}))
    with (
        caplog.at_level("INFO", "onelaunch"),
        LLM("random:llama", device="cpu", cuda_graph_bs=[2], max_running_req=2) as llm,
    ):
        assert llm.engine.runner.graph_bytes == 6 << 20
        assert "6.0 MiB of memory" in caplog.text


def test_a_t4_gets_float16_and_newer_ones_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    for capability, dtype in (((7, 5), torch.float16), ((8, 0), torch.bfloat16), ((9, 0), torch.bfloat16)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, found=capability: found)
        assert pick_dtype(GPU) is dtype
    assert pick_dtype(torch.device("cpu")) is torch.float32


def test_default_sizes_depend_on_the_free_memory_and_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: Any = {"attention_backend": "auto", "cuda_graph_bs": None, "cuda_graph_max_bs": None}
    for free, most, largest in ((90 << 30, 999, 256), (80 << 30, 999, 160), (90 << 30, 50, 50)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device, free=free: (free, 0))
        plan = plan_graphs("rerun", GPU, max_running_req=most, **arguments)
        assert plan.sizes[-1] == largest


def test_the_tape_is_not_for_a_gpu_and_the_plan_says_so() -> None:
    arguments: Any = {"cuda_graph_bs": [1], "cuda_graph_max_bs": None, "max_running_req": 4}
    with pytest.warns(UserWarning, match="no graphs.*this is a GPU. Use graph='auto' for real graphs"):
        plan = plan_graphs("tape", GPU, attention_backend="auto", **arguments)
    assert (plan.mode, plan.sizes) == ("off", [])
    plan = plan_graphs("rerun", GPU, attention_backend="torch", **arguments)
    assert (plan.mode, plan.attention_backend, plan.obstacle) == ("rerun", "torch", None)


def test_with_a_gpu_the_names_are_torchs_own() -> None:
    code = (
        "import torch; torch.cuda.is_available = lambda: True\n"
        "from onelaunch import cuda, emulator\n"
        "assert not cuda.is_emulated\n"
        "assert all(getattr(cuda, name) is getattr(torch.cuda, name) for name in emulator.__all__)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
