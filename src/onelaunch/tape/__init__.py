"""The tape: a CUDA Graph as data, recorded and replayed on a CPU. It knows PyTorch and nothing of language models."""

from __future__ import annotations

from onelaunch.tape.executors import FastestExecutor, make_executor
from onelaunch.tape.native import NativeExecutor
from onelaunch.tape.pool import Pool, PoolHandle
from onelaunch.tape.recorder import Recorder
from onelaunch.tape.replay import Executor, PythonExecutor
from onelaunch.tape.rules import RULES, CaptureError, Rule
from onelaunch.tape.script import ScriptExecutor
from onelaunch.tape.shapes import record_shapes
from onelaunch.tape.tape import Buffer, Frozen, Kernel, Tape, TensorRef

__all__ = [
    "RULES",
    "Buffer",
    "CaptureError",
    "Executor",
    "FastestExecutor",
    "Frozen",
    "Kernel",
    "NativeExecutor",
    "Pool",
    "PoolHandle",
    "PythonExecutor",
    "Recorder",
    "Rule",
    "ScriptExecutor",
    "Tape",
    "TensorRef",
    "make_executor",
    "record_shapes",
]
