"""The Python that runs in a page: five files of Pyodide, fetched once with npm, checked, and kept in the cache.

Version and hashes stand here and nowhere else. `python book/scripts/pyodide_files.py` fetches the files and says where
they are; `--pins` prints the hashes of the release that VERSION names, to move the pin.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from onelaunch.cache import cache_dir

# Python 3.13, the newest that this book is tested with; the releases after it bring a newer Python and are larger.
VERSION = "0.29.5"
TARBALL = "sha512-TkYrUv9m8QmfImADKRmpwZulL48E0uUaBSO+dvRQKyAJc0qh9gu7jn8btyHPh3NZm1r2IH2YrJhIr7Q2B9urAw=="
# What a page asks instead of this site where the files could not be had: the same release of the same npm package.
CDN = f"https://cdn.jsdelivr.net/npm/pyodide@{VERSION}/"
NPM_SECONDS = 300


@dataclass(frozen=True)
class File:
    """One file of the release. integrity: as browsers read it."""

    bytes: int
    integrity: str


FILES = {
    "pyodide.js": File(18597, "sha384-VR47TfKeAmT7vMej7bwOVg0tHTQLLGMSIpsXtFMCZG5OpKZSIXoSLtGY//qHcxc6"),
    "pyodide.asm.js": File(1074322, "sha384-8mBRd9rjeP9blbPmWuCum2qq484+GPVFDSaebLOh+ryUrQZz9SJ4v2dh4STKX9Jo"),
    "pyodide.asm.wasm": File(8647684, "sha384-8LoW84uYNGn2avpfQNVvzVXqylKrFwJgbBNJ87g6D5Ud+8bzAJzOV38jQkOpVBq7"),
    "python_stdlib.zip": File(2424003, "sha384-qFTVfVvRHvt1V/9yXR9tJ0uAKF7men+qhxh13+YPQPYWYMAq4dKaaL6N+/DIo4gR"),
    "pyodide-lock.json": File(122027, "sha384-xDHcZeNLjl7+brzrlYDRbrxe3I9kROtVuWNljcqvsUtLl47M+jg2UGQ13S7KV5Xc"),
}


class NotFetched(Exception):
    """The files could not be had. The message says why, and what to do."""


def folder() -> Path:
    """Where the files are kept."""
    return cache_dir() / f"pyodide-{VERSION}"


def cached() -> Path | None:
    """The folder with the five files, each as it should be; None if they have not been fetched."""
    sound = all(_hash(folder() / name, "sha384") == file.integrity for name, file in FILES.items())
    return folder() if sound else None


def obtain() -> Path:
    """The folder with the five files, which are fetched if they are not there yet. Raises NotFetched."""
    found = cached()
    if found:
        return found
    npm = shutil.which("npm")
    if npm is None:
        raise NotFetched("npm is not installed (it comes with Node.js; on Debian and Ubuntu: apt-get install npm)")
    try:
        folder().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder().parent, prefix=".pyodide-") as name:
            archive = _fetch(npm, Path(name))
            digest = _hash(archive, "sha512")
            if digest != TARBALL:
                raise NotFetched(f"what npm fetched as pyodide@{VERSION} has the hash {digest}, not {TARBALL}")
            _unpack(archive, Path(name) / "files")
            shutil.rmtree(folder(), ignore_errors=True)  # damaged, or there would be nothing to fetch
            (Path(name) / "files").rename(folder())
    except OSError as error:
        if cached():  # another build was faster
            return folder()
        raise NotFetched(f"they cannot be kept in {folder()} ({error.strerror or error})") from error
    return folder()


def _fetch(npm: str, place: Path) -> Path:
    """Have npm fetch the package, by its own settings for registry and proxy. Returns the archive."""
    command = [npm, "pack", f"pyodide@{VERSION}", "--ignore-scripts", "--fetch-retries=1", "--loglevel=error"]
    try:
        done = subprocess.run(
            command,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=NPM_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise NotFetched(f"npm did not fetch pyodide@{VERSION} within {NPM_SECONDS} s") from None
    archives = list(place.glob("*.tgz"))
    if done.returncode or len(archives) != 1:
        said = " ".join(done.stdout.split())[:300] or "nothing"
        raise NotFetched(f"npm could not fetch pyodide@{VERSION}; it said: {said}")
    return archives[0]


def _unpack(archive: Path, place: Path) -> None:
    """Unpack the five files of an archive into the new folder ``place``."""
    place.mkdir()
    with tarfile.open(archive) as packed:
        for name in FILES:
            member = packed.extractfile(f"package/{name}")
            assert member is not None, f"{name} is no file"
            (place / name).write_bytes(member.read())


def _hash(path: Path, algorithm: str) -> str:
    """The hash of a file as npm and browsers write it; empty if there is no such file."""
    if not path.is_file():
        return ""
    digest = hashlib.new(algorithm, path.read_bytes()).digest()
    return f"{algorithm}-{base64.b64encode(digest).decode()}"


def pins() -> str:
    """TARBALL and FILES as they are to stand above, for the release that VERSION names, whatever its hashes."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotFetched("npm is not installed")
    with tempfile.TemporaryDirectory() as name:
        archive = _fetch(npm, Path(name))
        lines = [f'TARBALL = "{_hash(archive, "sha512")}"', "FILES = {"]
        _unpack(archive, Path(name) / "files")
        for file in FILES:
            path = Path(name) / "files" / file
            lines.append(f'    "{file}": File({path.stat().st_size}, "{_hash(path, "sha384")}"),')
    return "\n".join([*lines, "}"])


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pins", action="store_true", help="print the hashes of the release that VERSION names")
    try:
        print(pins() if parser.parse_args().pins else f"Pyodide {VERSION} is in {obtain()}")
    except NotFetched as error:
        print(f"Pyodide {VERSION} could not be fetched: {error}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
