"""The command line, called as a user calls it: what it prints where, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from onelaunch import cli
from onelaunch.timeline.costs import Costs


def onelaunch(
    *args: str, input_text: str | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "onelaunch", *args],
        capture_output=True,
        text=True,
        input=input_text,
        env=env,
        timeout=300,
    )


def test_demo_writes_the_text_to_stdout_and_the_speed_to_stderr() -> None:
    done = onelaunch("demo", "The capital of France is", "--max-tokens", "8", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The capital of France is Paris.")
    assert "tokens/s" in done.stderr
    assert "smollm2-135m" in done.stderr


def test_demo_can_put_a_question() -> None:
    done = onelaunch("demo", "What is the capital of France?", "--chat", "--max-tokens", "12", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout
    assert "im_start" not in done.stdout


def test_demo_repeats_a_sampled_text_in_another_process(capsys: pytest.CaptureFixture[str]) -> None:
    args = ("demo", "abc", "--model", "random:qwen3", "--temperature", "1", "--seed", "4", "--max-tokens", "20")
    other = onelaunch(*args)
    assert other.returncode == 0, other.stderr
    assert cli.main(args) == 0
    assert capsys.readouterr().out == other.stdout


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ((), 2, "COMMAND"),
        (("dance",), 2, "invalid choice: 'dance'"),
        (("demo", "--max-tokens", "many"), 2, "invalid int value: 'many'"),
        (("demo", "a", "b"), 2, "unrecognized arguments: b"),
        (
            ("demo", "a", "--max-tokens", "0"),
            1,
            "onelaunch demo: SamplingParams.max_tokens must be an int >= 1; found 0",
        ),
        (("demo", "a", "--temperature", "nan"), 1, "temperature must be a number >= 0; found nan"),
        (("demo", "a", "--model", "gpt-17"), 1, "unknown model 'gpt-17'"),
        (("demo", "", "--model", "random:llama"), 1, "the prompt is empty"),
        (("demo", "a", "--model", "random:llama", "--device", "tpu"), 1, "tpu"),
        (("bench", "--budget", "0"), 1, "onelaunch bench: the budget must be a number of seconds above 0"),
        (("bench", "--budget", "nan"), 1, "found nan"),
        (("bench", "--device", "tpu"), 1, "found 'tpu'"),
        (("demo", "x" * 5000, "--model", "random:llama"), 1, "max_seq_len_override"),
    ],
)
def test_nonsense_gets_one_clear_sentence(
    args: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process: what the command line does not catch, which a user would see as a traceback, fails the test."""
    try:
        ended = cli.main(args)
    except SystemExit as left:  # argparse's way
        ended = left.code
    assert ended == code
    assert said in capsys.readouterr().err


def test_bench_measures_and_says_what_it_could_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--budget", "0.5", "--device", "cpu", "--json"]) == 0
    measured = Costs.from_json(capsys.readouterr().out)
    assert measured.operation.start.us > 0
    assert "gpu" in measured.not_measured


def test_doctor_says_what_this_machine_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    text = onelaunch("doctor")
    assert text.returncode == 0
    assert "torch" in text.stdout
    assert cli.main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_version_and_help() -> None:
    assert onelaunch("--version").stdout.startswith("onelaunch 0.")
    assert "demo" in onelaunch("--help").stdout


def test_compile_says_where_the_loop_lies_or_what_the_compiler_said(tmp_path: Path) -> None:
    broken = {**os.environ, "ONELAUNCH_CACHE": str(tmp_path), "CXX": "false", "CC": "false"}
    done = onelaunch("compile", env=broken)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "loop.cpp" in done.stderr
    assert "Traceback" not in done.stderr.splitlines()[0]
    assert not list(tmp_path.glob("loop-*/*"))
