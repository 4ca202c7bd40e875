"""Nothing public of torch.cuda's graphs, streams and events is missing, and everything takes the same arguments.

The methods that torch implements in C have no signature to inspect: those stand here as the stubs state them.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest
import torch

import onelaunch
from onelaunch import cuda, emulator

# What the emulator cannot have, and why.
LEFT_OUT = {
    "ExternalStream": "wraps a stream of another library on a device that is not there",
}
STREAM_API = (
    "Stream",
    "StreamContext",
    "Event",
    "current_stream",
    "default_stream",
    "set_stream",
    "stream",
    "synchronize",
)
NAMES = [*torch.cuda.graphs.__all__, *STREAM_API]
CLASSES = ("CUDAGraph", "graph", "Stream", "StreamContext", "Event")

# From torch/_C/__init__.pyi: _CUDAGraph, and Stream as the base of _CudaStreamBase.
IN_C: dict[tuple[str, str], list[str]] = {
    ("CUDAGraph", "register_generator_state"): ["Generator"],
    ("CUDAGraph", "get_currently_capturing_graph"): [],
    ("CUDAGraph", "begin_capture_to_if_node"): ["scalar_cuda_pred_tensor"],
    ("CUDAGraph", "end_capture_to_conditional_node"): [],
    ("Stream", "is_capturing"): [],
    ("Stream", "priority_range"): [],
    ("Stream", "__enter__"): [],
    ("Stream", "__exit__"): ["exc_type", "exc_val", "exc_tb"],
}
METHODS = [
    (cls, name)
    for cls in CLASSES
    for name, member in inspect.getmembers(getattr(torch.cuda, cls), callable)
    if not name.startswith("_") or name in ("__enter__", "__exit__")
]
ATTRIBUTES = {
    "Stream": ("stream_id", "device_index", "device_type", "device", "cuda_stream", "priority"),
    "Event": ("device", "cuda_event"),
}


def parameters(function: Any) -> list[tuple[str, Any]]:
    return [(p.name, p.default) for p in inspect.signature(function).parameters.values() if p.name != "self"]


def constructor(cls: Any) -> Any:
    return cls.__new__ if cls.__module__.startswith("torch") and "__new__" in vars(cls) else cls.__init__


@pytest.mark.parametrize("name", sorted(set(NAMES)))
def test_a_public_name_is_there_and_exported(name: str) -> None:
    assert name in emulator.__all__
    assert hasattr(cuda, name)


def test_what_torch_exports_from_its_graphs_and_streams_is_there_or_listed_with_a_reason() -> None:
    from torch.cuda import graphs, streams

    public = set(graphs.__all__)
    public |= {n for n, v in vars(streams).items() if inspect.isclass(v) and v.__module__ == streams.__name__}
    assert public - set(emulator.__all__) == set(LEFT_OUT)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CLASSES])
def test_a_function_takes_what_torch_takes(name: str) -> None:
    ours, theirs = (parameters(getattr(home, name)) for home in (emulator, torch.cuda))
    assert ours[: len(theirs)] == theirs


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_made_as_torch_makes_it(name: str) -> None:
    theirs = [p for p in parameters(constructor(getattr(torch.cuda, name))) if p[0] != "cls"]
    ours = parameters(getattr(emulator, name).__init__)
    assert ours[: len(theirs)] == theirs


@pytest.mark.parametrize(("cls", "name"), METHODS)
def test_a_method_takes_what_torch_takes(cls: str, name: str) -> None:
    theirs = parameters(getattr(getattr(torch.cuda, cls), name))
    ours = parameters(getattr(getattr(emulator, cls), name))
    if name == "__exit__":  # called by `with` alone: the number is what counts
        assert len(ours) == 3
    else:
        assert ours[: len(theirs)] == theirs


@pytest.mark.parametrize(("cls", "name"), IN_C)
def test_a_method_that_is_c_in_torch_takes_as_many_arguments(cls: str, name: str) -> None:
    assert len(parameters(getattr(getattr(emulator, cls), name))) == len(IN_C[cls, name])


@pytest.mark.parametrize(("cls", "name"), [(cls, name) for cls, names in ATTRIBUTES.items() for name in names])
def test_an_attribute_is_there(cls: str, name: str) -> None:
    assert hasattr(getattr(emulator, cls)(), name)


def test_the_stubs_name_no_method_of_a_graph_that_is_missing() -> None:
    from pathlib import Path

    stub = Path(torch.__file__).parent / "_C" / "__init__.pyi"
    text = stub.read_text(encoding="utf-8")
    body = text[text.index("class _CUDAGraph") :].split("\nclass ", 2)[0:1][0].split("\n# Defined in")[0]
    methods = [line.split("def ")[1].split("(")[0] for line in body.splitlines() if line.startswith("    def ")]
    assert len(methods) > 8
    assert [name for name in methods if not hasattr(emulator.CUDAGraph, name)] == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU, so the names are torch's own")
def test_without_a_gpu_the_names_are_the_emulators() -> None:
    assert cuda.is_emulated
    assert onelaunch.cuda is cuda
    assert all(getattr(cuda, name) is getattr(emulator, name) for name in emulator.__all__)


def test_the_package_is_imported_without_torch_and_cuda_without_the_engine() -> None:
    code = (
        "import sys, onelaunch; assert 'torch' not in sys.modules; "
        "from onelaunch import cuda; cuda.CUDAGraph; "
        "heavy = [m for m in sys.modules if m.startswith(('onelaunch.engine', 'transformers', 'matplotlib'))]; "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
