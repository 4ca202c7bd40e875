"""Plays a tape from a loop in C++ (``loop.cpp``), where somebody has compiled it: ``onelaunch compile``.

That takes a C++ compiler and about half a minute, once for each version of PyTorch. The result is kept in the cache
folder and used from then on. Nothing is compiled unasked.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import torch

from onelaunch.cache import cache_dir
from onelaunch.tape.lowering import lower, once, positional
from onelaunch.tape.replay import Binder
from onelaunch.tape.tape import Tape, TensorRef, replace

NAME = "onelaunch_loop"
SOURCE = Path(__file__).with_name("loop.cpp")


class NativeBuildError(RuntimeError):
    """The loop could not be compiled."""


class NativeExecutor:
    """Issues the kernels from C++. Raises NativeBuildError where the loop has not been compiled."""

    name = "native"

    def __init__(self, tape: Tape) -> None:
        self._loop = load().Loop()
        bind = Binder(tape)

        def value(item: Any) -> Any:
            return replace(item, TensorRef, bind)

        for kernel in tape.kernels:
            call = lower(kernel)
            schema = call.op._schema
            copies = [(n, bind(once(ref, ref))) for n, ref in call.copies]
            self._loop.add(schema.name, schema.overload_name, [value(item) for item in positional(call)], copies)

    def run(self) -> None:
        self._loop.run()

    def shortest(self, repeats: int = 30) -> list[float]:
        """The least time that each kernel took in ``repeats`` runs of the whole tape, in seconds. What it adds up to is
        what no executor that issues the kernels one by one can beat."""
        return list(self._loop.shortest(repeats))


def library() -> Path:
    """Where the compiled loop of this Python and this PyTorch lies, if it does."""
    key = hashlib.sha256(f"{torch.__version__} {sysconfig.get_config_var('SOABI')}".encode() + SOURCE.read_bytes())
    return cache_dir() / f"loop-{key.hexdigest()[:16]}" / f"{NAME}{EXTENSION_SUFFIXES[-1]}"


def is_built() -> bool:
    """Whether the loop has been compiled for this Python and this PyTorch."""
    return library().is_file()


@cache
def load() -> Any:
    """The compiled module."""
    path = library()
    if not path.is_file():
        raise NativeBuildError(
            f"the native executor was asked for, and {path} is not there. Compile it with "
            "`onelaunch compile` (a C++ compiler is needed), or take the executor 'script'."
        )
    spec = importlib.util.spec_from_file_location(NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build() -> Path:
    """Compile the loop, if it is not yet, and return where it lies.

    Raises NativeBuildError with what the compiler said.
    """
    target = library()
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        done = subprocess.run(
            [sys.executable, "-c", _SETUP, NAME, str(SOURCE), work], capture_output=True, text=True, check=False
        )
        made = sorted(Path(work, "lib").glob(f"{NAME}*"))
        if done.returncode or not made:
            said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
            raise NativeBuildError(f"the loop was to be compiled from {SOURCE}, and this came of it:\n{said}")
        shutil.move(made[0], target)
    return target


# PyTorch's own way to build an extension, in a process of its own because it prints and changes directories.
_SETUP = """
import sys
from setuptools import Distribution
from torch.utils.cpp_extension import BuildExtension, CppExtension
name, source, work = sys.argv[1:]
extension = CppExtension(name, [source], extra_compile_args=["-O2"])
options = {"ext_modules": [extension], "cmdclass": {"build_ext": BuildExtension.with_options(use_ninja=False)}}
command = Distribution(options).get_command_obj("build_ext")
command.build_lib, command.build_temp = f"{work}/lib", f"{work}/temp"
command.ensure_finalized()
command.run()
"""
