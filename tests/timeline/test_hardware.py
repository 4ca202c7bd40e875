"""The table of GPUs."""

import dataclasses
import subprocess
import sys

import pytest

from onelaunch.timeline import HARDWARE, Hardware, hardware


def test_every_field_of_every_gpu_has_a_source() -> None:
    numbers = {item.name for item in dataclasses.fields(Hardware)} - {"name", "sources"}
    for gpu in HARDWARE.values():
        assert set(gpu.sources) == numbers, gpu.name
        assert all(gpu.sources.values()), gpu.name


def test_a_name_is_found_whatever_its_case_and_an_unknown_one_lists_all() -> None:
    assert hardware("h100") is HARDWARE["H100"]
    with pytest.raises(KeyError) as error:
        hardware("A6000")
    assert all(name in str(error.value) for name in HARDWARE)


def test_your_own_gpu_is_taken_as_it_is() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        hardware(None)  # type: ignore[arg-type]
    mine = Hardware("mine", 8, 100, 10, None, 1, 10, 1)
    assert hardware(mine) is mine
    with pytest.raises(ValueError, match="sms"):
        Hardware("mine", 8, 100, 10, 10, 1, 0, 1)


def test_t4_has_no_bfloat16_and_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="float16"):
        hardware("T4").tflops("bf16")
    assert hardware("T4").tflops("fp16") == 65


def test_the_timeline_needs_no_torch() -> None:
    code = "import sys, onelaunch.timeline, onelaunch.timeline.published; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
