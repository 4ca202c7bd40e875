"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import torch

from project import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


EXAMPLES = re.findall(r"```python\n(.+?)```\s+```\n(.+?)```", README, flags=re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(("code", "output"), EXAMPLES, ids=["the engine", "a capture", "a check", "another GPU"])
def test_an_example_prints_what_the_readme_says(code, output, tmp_path):
    if "is_emulated" in code and torch.cuda.is_available():
        pytest.skip("the README shows what a machine without a GPU prints")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == output, done.stderr


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_what_a_page_names_exists(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z]+)", text)):
        assert re.search(rf"^{target}:", make, flags=re.MULTILINE), f"make {target}"
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / link).exists(), link
    for path in re.findall(r"`((?:src|book|tests|notebooks|exercises|benchmarks)/[\w./]*)`", text):
        if "NN" not in path:
            assert (ROOT / path).exists(), path
