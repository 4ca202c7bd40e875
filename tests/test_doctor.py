"""The doctor tells the truth about this machine, and about one where something is missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import onelaunch
from onelaunch import doctor
from onelaunch.doctor import Row

SOURCE = str(Path(onelaunch.__file__).parents[1])


def named(rows: list[Row], name: str) -> Row:
    [row] = [row for row in rows if row.name == name]
    return row


def test_here_the_engine_runs_and_a_machine_without_a_gpu_is_normal(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main() == 0
    out = capsys.readouterr().out
    assert "The engine runs here." in out
    assert torch.__version__ in out
    rows = doctor.report()
    assert not [row for row in rows if row.status == "missing"]
    if not torch.cuda.is_available():
        assert named(rows, "GPU").found == "none"
        assert named(rows, "GPU").status == "ok"
        assert [named(rows, name).status for name in doctor.BACKENDS if named(rows, name).found == "not installed"] == [
            "ok" for name in doctor.BACKENDS if named(rows, name).found == "not installed"
        ]
        assert "no GPU" in named(rows, "cells for a GPU").found


def test_all_values_start_in_one_column(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.main()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    rows = doctor.report()
    assert len(lines) == len(rows)
    columns = {line.index(row.found, 4 + len(row.name)) for row, line in zip(rows, lines, strict=True)}
    assert len(columns) == 1


def test_json_holds_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(as_json=True) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["ready"] is True
    assert [Row(**row) for row in content["rows"]] == doctor.report()


def test_looking_does_not_import_transformers() -> None:
    script = "import sys; from onelaunch import doctor; doctor.report(); print('transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_where_nothing_is_installed_it_says_what_the_engine_lacks() -> None:
    script = f"import sys; sys.path.insert(0, {SOURCE!r}); from onelaunch import doctor; sys.exit(doctor.main())"
    # -S: no site-packages, so this Python has its standard library and nothing else.
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "The engine cannot run here: torch (not installed), numpy (not installed)" in done.stdout
    assert "pip install torch" in done.stdout


def test_everything_the_doctor_asks_for_is_a_dependency() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    declared = {name.lower() for name in re.findall(r'^ +"([\w.-]+)[><=~]', text, re.MULTILINE)}
    assert {*doctor.NEEDED, *doctor.OPTIONAL, *doctor.BOOK, "torch"} <= declared


def test_a_backend_that_is_installed_but_broken_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "flash_attn").mkdir()
    (tmp_path / "flash_attn" / "__init__.py").write_text("raise ImportError('undefined symbol: _ZN3c10')")
    monkeypatch.syspath_prepend(tmp_path)
    row = named(doctor.report(), "flash_attn")
    assert row.found == "installed, but cannot be imported (undefined symbol: _ZN3c10)"
    assert row.status == "note"


@pytest.mark.parametrize(("made", "says"), [(False, "not there yet"), (True, "damaged or of an older kind")])
def test_the_state_of_the_model_is_told(made: bool, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONELAUNCH_CACHE", str(tmp_path))
    if made:
        (tmp_path / "smollm2-135m").mkdir()
    rows = doctor.report()
    assert named(rows, "cache folder").found == str(tmp_path)
    assert named(rows, "smollm2-135m").found == says


def test_without_chromium_the_browser_checks_are_listed_as_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "Chromium" in named(doctor.report(), "browser checks").found
    chromium = tmp_path / ("chromium.exe" if os.name == "nt" else "chromium")
    chromium.write_text("")
    chromium.chmod(0o755)
    assert named(doctor.report(), "Chromium").found == str(chromium)
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "gone"))
    assert "which does not exist" in named(doctor.report(), "Chromium").found
