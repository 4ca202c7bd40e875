"""What this machine can do: ``onelaunch doctor``.

Looks for what the engine needs, what makes it faster, what the book is built with, and says what will be skipped here.
A machine without a GPU is a normal machine for this book. Importing this module imports neither torch nor transformers.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

Status = Literal["ok", "note", "missing"]

OLDEST_TORCH = (2, 6)
PYTHONS = ((3, 10), (3, 13))
NEEDED = ("numpy", "safetensors", "tokenizers", "jinja2", "filelock", "tqdm")  # nothing runs without these
OPTIONAL = {
    "gguf": "the first start reads the embedded model with it",
    "transformers": "the reference in tests, and older tokenizer formats",
    "matplotlib": "draws the figures",
}
BACKENDS = {
    "triton": "attention kernels written in Python, for a GPU",
    "flashinfer": "attention backend of vLLM and SGLang, for a GPU",
    "flash_attn": "attention backend, for a GPU",
}
BOOK = {
    "jupyter-book": "builds the site",
    "nbval": "runs notebooks as tests and judges exercises",
    "playwright": "checks the site in a browser",
}
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
COMPILERS = ("c++", "g++", "clang++", "cl")


@dataclass(frozen=True)
class Row:
    """One line of the report. ``missing`` is a thing that the engine cannot run without; ``note`` is worth knowing."""

    section: str
    name: str
    found: str
    status: Status = "ok"
    why: str = ""


def report() -> list[Row]:
    """All that is known of this machine, in the order in which it is shown."""
    torch, torch_problem = _import("torch")
    rows = [*_engine(torch, torch_problem), *_machine(torch), *_backends(torch), *_book(), *_model()]
    return rows + list(_skipped(torch, rows))


def main(as_json: bool = False) -> int:
    """Print the report. Returns 0, or 1 where something is missing that the engine needs."""
    rows = report()
    missing = [row for row in rows if row.status == "missing"]
    if as_json:
        print(json.dumps({"ready": not missing, "rows": [asdict(row) for row in rows]}, indent=2))
    else:
        print("\n".join(_lines(rows)))
        if missing:
            print(f"\nThe engine cannot run here: {', '.join(f'{row.name} ({row.found})' for row in missing)}.")
        else:
            print("\nThe engine runs here.")
    return 1 if missing else 0


def _lines(rows: list[Row]) -> Iterator[str]:
    width = max(len(row.name) for row in rows)
    section = ""
    for row in rows:
        if row.section != section:
            yield f"{'' if not section else chr(10)}{row.section}"
            section = row.section
        mark = {"ok": " ", "note": "-", "missing": "!"}[row.status]
        why = f"  ({row.why})" if row.why else ""
        yield f"  {mark} {row.name:{width}}  {row.found}{why}".rstrip()


def _engine(torch: ModuleType | None, torch_problem: str) -> Iterator[Row]:
    tested = PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]
    yield Row(
        "Engine", "Python", platform.python_version(), _status(tested), "" if tested else "tested with 3.10 to 3.13"
    )
    if torch is None:
        yield Row("Engine", "torch", torch_problem, "missing", "install it, the CPU build is enough: pip install torch")
    else:
        version = str(torch.__version__)
        new = tuple(int(part) for part in version.split("+")[0].split(".")[:2]) >= OLDEST_TORCH
        why = "" if new else f"{'.'.join(map(str, OLDEST_TORCH))} or newer is needed: pip install --upgrade torch"
        yield Row("Engine", "torch", f"{version}, {_torch_build(torch)}", _status(new, "missing"), why)
    for name in NEEDED:
        yield _package("Engine", name, "missing", f"pip install {name}")
    for name, why in OPTIONAL.items():
        yield _package("Engine", name, "note", why)


def _machine(torch: ModuleType | None) -> Iterator[Row]:
    logical = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical
    cores = f"{logical} logical cores" + (f", {usable} of them for this process" if usable != logical else "")
    threads = f", torch uses {torch.get_num_threads()} threads" if torch is not None else ""
    yield Row("Machine", "CPU", f"{platform.machine()}, {cores}{threads}")
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        yield Row("Machine", "memory", _size(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    driver = _driver_version()
    if torch is not None and torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            found = f"{properties.name}, {_size(properties.total_memory)}"
            found += f", compute capability {properties.major}.{properties.minor}"
            yield Row("Machine", f"GPU {index}", found + (f", driver {driver}" if driver else ""))
    elif driver and torch is not None:
        why = "this torch cannot use it: install the build of torch for your CUDA version"
        yield Row("Machine", "GPU", f"there is one, driver {driver}", "note", why)
    else:
        yield Row("Machine", "GPU", "none", "ok", "that is fine: only what is marked as needing one is skipped")
    compiler = os.environ.get("CXX") or next((path for path in map(shutil.which, COMPILERS) if path), None)
    why = "torch.compile and `onelaunch compile` need one; everything else does without"
    yield Row("Machine", "C++ compiler", compiler or "none", _status(compiler), "" if compiler else why)
    if torch is not None:
        from onelaunch.tape import native

        built = native.is_built()
        why = "" if built else "`onelaunch compile` makes replays on a CPU faster"
        yield Row("Machine", "C++ loop for tapes", "compiled" if built else "not compiled", "ok", why)


def _backends(torch: ModuleType | None) -> Iterator[Row]:
    gpu = torch is not None and torch.cuda.is_available()
    yield Row("Attention backends", "torch", "built in", "ok", "the reference, on any machine")
    for name, why in BACKENDS.items():
        module, problem = _import(name)
        if module is not None:
            yield Row("Attention backends", name, f"{getattr(module, '__version__', 'found')}", "ok", why)
        else:
            # Where there is no GPU they could not be used, so their absence is nothing to note.
            yield Row("Attention backends", name, problem, "note" if gpu or problem != "not installed" else "ok", why)


def _book() -> Iterator[Row]:
    for name, why in BOOK.items():
        yield _package("Book", name, "note", why)
    named = os.environ.get("CHROMIUM")
    found = named or next((path for path in map(shutil.which, CHROMIUMS) if path), None)
    if named and not Path(named).exists():
        yield Row(
            "Book", "Chromium", f"CHROMIUM names {named}, which does not exist", "note", "the browser checks use it"
        )
    else:
        yield Row("Book", "Chromium", found or "not found", _status(found), "the browser checks use it")


def _model() -> Iterator[Row]:
    from onelaunch.cache import cache_dir
    from onelaunch.models.embedded import SMOLLM2, cached_folder

    yield Row("Model", "cache folder", str(cache_dir()))
    folder = cached_folder()
    if folder is not None:
        size = sum(path.stat().st_size for path in folder.iterdir())
        yield Row("Model", SMOLLM2.name, f"there, {_size(size)}")
    elif (cache_dir() / SMOLLM2.name).exists():
        yield Row("Model", SMOLLM2.name, "damaged or of an older kind", "note", "the next start fetches it again")
    else:
        yield Row("Model", SMOLLM2.name, "not there yet", "note", "the first start fetches 93 MB; 540 MB stay")


def _skipped(torch: ModuleType | None, rows: list[Row]) -> Iterator[Row]:
    """What follows from the rows so far for the book and its tests."""
    absent = {row.name for row in rows if row.section == "Book" and row.status == "note"}
    skipped = []
    if torch is None or not torch.cuda.is_available():
        skipped.append(("cells for a GPU", "no GPU that torch can use"))
    if "jupyter-book" in absent:
        skipped.append(("building the site", "no jupyter-book: make book installs it"))
    if "nbval" in absent:
        skipped.append(("notebook tests", "no nbval: make test installs it"))
    if absent & {"playwright", "Chromium"}:
        missing = " and ".join(sorted(absent & {"playwright", "Chromium"}))
        skipped.append(("browser checks", f"no {missing}"))
    for name, why in skipped:
        yield Row("Skipped here", name, why)
    if not skipped:
        yield Row("Skipped here", "nothing", "")


def _package(section: str, name: str, absent: Status, why: str) -> Row:
    """What is installed under this name. Reads its metadata only: importing transformers would take seconds."""
    try:
        return Row(section, name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Row(section, name, "not installed", absent, why)


def _import(name: str) -> tuple[ModuleType | None, str]:
    """The module, or why there is none. A package built for another torch is installed and still does not import."""
    if importlib.util.find_spec(name) is None:
        return None, "not installed"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name), ""
    except Exception as error:  # a broken binary can raise anything
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return None, f"installed, but cannot be imported ({first_line[:120]})"


def _torch_build(torch: Any) -> str:
    if torch.version.cuda:
        return f"build for CUDA {torch.version.cuda}"
    return f"build for ROCm {torch.version.hip}" if torch.version.hip else "CPU build"


def _driver_version() -> str | None:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    command = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.split("\n")[0].strip() or None if done.returncode == 0 else None


def _status(found: object, otherwise: Status = "note") -> Status:
    return "ok" if found else otherwise


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB" if size_bytes >= 2**30 else f"{size_bytes / 1e6:.0f} MB"


if __name__ == "__main__":
    sys.exit(main(as_json="--json" in sys.argv[1:]))
