"""The Python for the page: fetched once, checked, and without npm a sentence that says so."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import sys
import tarfile
from pathlib import Path

import pytest

import pyodide_files
from pyodide_files import File, NotFetched

CONTENT = {name: f"this is {name}".encode() for name in pyodide_files.FILES}


def integrity(data: bytes, algorithm: str) -> str:
    return f"{algorithm}-{base64.b64encode(hashlib.new(algorithm, data).digest()).decode()}"


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and an npm that packs small files and counts its calls in the file that is returned."""
    package, calls, tools = tmp_path / "package.tgz", tmp_path / "calls", tmp_path / "tools"
    with tarfile.open(package, "w:gz") as packed:
        for name, data in {**CONTENT, "README.md": b""}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
    tools.mkdir()
    calls.write_text("")
    command = tools / "npm"
    command.write_text(
        f"#!{sys.executable}\nimport shutil, sys\nopen({str(calls)!r}, 'a').write(' '.join(sys.argv[1:3]) + ';')\n"
        f"shutil.copy({str(package)!r}, 'pyodide.tgz')\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("ONELAUNCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(pyodide_files, "TARBALL", integrity(package.read_bytes(), "sha512"))
    files = {name: File(len(data), integrity(data, "sha384")) for name, data in CONTENT.items()}
    monkeypatch.setattr(pyodide_files, "FILES", files)
    return calls


def test_the_files_are_fetched_once(npm):
    assert pyodide_files.cached() is None
    folder = pyodide_files.obtain()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == CONTENT
    assert pyodide_files.obtain() == pyodide_files.cached() == folder
    assert npm.read_text() == f"pack pyodide@{pyodide_files.VERSION};"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name], "nothing is left lying about"


def test_a_damaged_file_in_the_cache_is_fetched_again(npm):
    (pyodide_files.obtain() / "pyodide.js").write_text("damaged")
    assert pyodide_files.cached() is None
    assert (pyodide_files.obtain() / "pyodide.js").read_bytes() == CONTENT["pyodide.js"]


def test_another_package_is_not_let_in(npm, monkeypatch):
    monkeypatch.setattr(pyodide_files, "TARBALL", "sha512-another")
    with pytest.raises(NotFetched, match="not sha512-another"):
        pyodide_files.obtain()
    assert pyodide_files.cached() is None


def test_without_npm_the_message_says_what_to_do(npm, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotFetched, match="apt-get install npm"):
        pyodide_files.obtain()


def test_what_npm_says_is_passed_on(npm, monkeypatch, tmp_path):
    (Path(os.environ["PATH"]) / "npm").write_text(f"#!{sys.executable}\nprint('no such host')\nraise SystemExit(1)\n")
    with pytest.raises(NotFetched, match="it said: no such host"):
        pyodide_files.obtain()


def test_the_pins_are_whole():
    assert set(pyodide_files.FILES) >= {"pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip"}
    assert pyodide_files.CDN.endswith(f"@{pyodide_files.VERSION}/")
