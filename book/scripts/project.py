"""Where things are: the folders of the book and the address of its repository, read from the one place that states it.

Everything under `book/scripts` starts here, so that no script guesses a path or repeats the address.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "_config.yml"
BUILD = ROOT / "_build"

# Folder -> pattern of the sources in it. The .ipynb lies beside each source. (Exercises: exercises.py.)
SOURCES = {"notebooks": "*.py"}


@dataclass(frozen=True)
class Repository:
    """Where the book is published. `url` has no trailing slash."""

    url: str
    branch: str

    @property
    def pip(self) -> str:
        """What pip installs the package from."""
        return f"git+{self.url}"

    def colab(self, path: str) -> str:
        """The address that opens `path`, relative to the root, in Colab. Colab opens GitHub repositories only."""
        host = "https://github.com/"
        if not self.url.startswith(host):
            raise ValueError(
                f"repository.url in {CONFIG.name} is {self.url!r}, but Colab opens notebooks from {host} only: "
                "change Repository.colab together with the address."
            )
        return f"https://colab.research.google.com/github/{self.url[len(host) :]}/blob/{self.branch}/{path}"


def repository(config: Path = CONFIG) -> Repository:
    """The repository as `_config.yml` states it, the only place that does."""
    try:
        stated = yaml.safe_load(config.read_text(encoding="utf-8"))["repository"]
        return Repository(stated["url"].rstrip("/"), stated.get("branch", "main"))
    except (OSError, KeyError, TypeError) as error:
        raise ValueError(f"{config} must hold repository.url, the address of this repository ({error!r})") from error


def sources(names: Iterable[str] = (), root: Path = ROOT) -> list[Path]:
    """The notebook sources, in order; with `names`, those whose file name starts with one of them."""
    found = [path for folder, pattern in SOURCES.items() for path in sorted((root / folder).glob(pattern))]
    names = [Path(name).name.removesuffix(".py").removesuffix(".ipynb") for name in names]
    for name in names:
        if not any(path.stem.startswith(name) for path in found):
            known = ", ".join(path.stem for path in found)
            raise ValueError(f"no notebook is called {name!r}. There are: {known}")
    return [path for path in found if not names or path.stem.startswith(tuple(names))]


def digest(paths: Iterable[Path], root: Path = ROOT, salt: str = "") -> str:
    """One hash of the files in `paths` (folders are walked), names included; Python's leftovers do not count."""
    total = hashlib.sha256(salt.encode())
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and not {"__pycache__", ".ipynb_checkpoints"} & set(file.parts):
                total.update(f"\0{file.relative_to(root).as_posix()}\0".encode())
                total.update(file.read_bytes())
    return total.hexdigest()
