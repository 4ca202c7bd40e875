"""The notebook pipeline: what it builds from a source, what it refuses, and what its proofs notice."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import nbformat
import pytest

import notebooks
from notebook_build import BOOTSTRAP, NotebookError, assemble, to_text
from notebook_lint import lint
from project import CONFIG, ROOT, Repository, repository

SITE = Repository("https://github.com/someone/some-book", "main")
SOURCE = '''\
# %% [markdown]
"""
# A title

Some text.
"""

# %%
import random
print(random.random())

# %% tags=["nbval-check-output"]
print("checked", 1 + 1)

# %% [markdown]
r"""
The half, $\\frac{1}{2}$.
"""

# %% id="named" tags=["nbval-check-output", "raises-exception"]
raise ValueError("as told")
'''


@pytest.fixture
def write(tmp_path):
    """Writes a source into an otherwise empty repository, with a title cell in front where `text` has none."""

    def write(text: str = SOURCE, name: str = "01_example", title: bool = True) -> Path:
        path = tmp_path / "notebooks" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text if text.startswith("# %% [markdown]") or not title else f"{TITLE}\n{text}")
        return path

    return write


TITLE = '# %% [markdown]\n"""\n# A title\n"""\n'


def build(source: Path) -> Path:
    target = source.with_suffix(".ipynb")
    target.write_text(to_text(notebooks.build_one(source, SITE, source.parents[1])))
    return target


def check(source: Path) -> list[str]:
    return notebooks.check_one(source, SITE, source.parents[1])


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> str:
    """The notebook that SOURCE builds, executed once."""
    source = tmp_path_factory.mktemp("book") / "notebooks" / "01_example.py"
    source.parent.mkdir()
    source.write_text(SOURCE)
    return build(source).read_text()


def ids(source: Path) -> list[str]:
    return [cell.id for cell in assemble(source, SITE, source.parents[1]).cells]


# Cell ids


def test_an_edit_to_one_cell_changes_no_other_id(write):
    before = ids(write())
    after = ids(write(SOURCE.replace("import random\n", "import random\n\nrandom.seed(0)\n")))
    assert len(before) == len(after)
    assert [a == b for a, b in zip(before, after, strict=True)] == [True] * 3 + [False] + [True] * 3


def test_a_new_cell_changes_no_other_id(write):
    before = ids(write())
    after = ids(write(SOURCE.replace("# %%\nimport random", '# %%\nprint("new")\n\n# %%\nimport random')))
    assert len(after) == len(before) + 1
    assert [name for name in after if name in before] == before


def test_cells_with_the_same_text_have_different_ids(write):
    names = ids(write("# %%\nprint(1)\n\n# %%\nprint(1)\n\n# %%\nprint(1)\n"))
    assert len(set(names)) == len(names) == 6


def test_an_id_that_the_author_gives_is_kept(write):
    assert ids(write())[-1] == "named"


@pytest.mark.parametrize("name", ["Two Words", "bootstrap", "under_score", ""])
def test_an_id_that_is_taken_or_malformed_is_refused(write, name):
    with pytest.raises(NotebookError, match="cell id"):
        ids(write(f'# %% id="{name}"\nprint(1)\n'))


# What is built


def test_the_link_and_the_bootstrap_cell_follow_the_title(write):
    title, link, bootstrap, *_ = assemble(source := write(), SITE, source.parents[1]).cells
    assert title.source.startswith("# A title")
    assert (
        "https://colab.research.google.com/github/someone/some-book/blob/main/notebooks/01_example.ipynb" in link.source
    )
    assert bootstrap.metadata.tags == ["bootstrap", "hide-cell"]
    assert "git+https://github.com/someone/some-book" in bootstrap.source


def test_a_notebook_without_a_title_is_refused(write):
    with pytest.raises(NotebookError, match="title"):
        ids(write("# %%\nprint(1)\n", title=False))


def test_only_the_text_of_checked_cells_is_kept(built):
    book = nbformat.reads(built, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    bootstrap, timed, checked, failing = code
    assert bootstrap.outputs == timed.outputs == []
    assert checked.outputs == [{"name": "stdout", "output_type": "stream", "text": "checked 2\n"}]
    assert failing.outputs[0].evalue == "as told"
    assert failing.outputs[0].traceback == ["ValueError: as told"]
    assert [cell.execution_count for cell in code] == [1, 2, 3, 4]
    assert set(book.metadata) == {"kernelspec"}
    assert book.metadata.kernelspec.name == "python3"
    assert all(set(cell.metadata) <= {"tags"} for cell in book.cells)


def test_building_twice_gives_the_same_bytes(write):
    source = write()
    assert build(source).read_bytes() == build(source).read_bytes()


def test_what_is_printed_slowly_is_kept_in_one_piece(write):
    code = "import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.3)\n"
    book = nbformat.read(build(write(f'# %% tags=["nbval-check-output"]\n{code}')), as_version=4)
    (output,) = book.cells[-1].outputs
    assert output.text == "0\n1\n2\n"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("x = 1", "prints nothing"),
        ("import sys; print('progress', file=sys.stderr); print(1)", "stderr"),
        ("print(object())", "memory address"),
        ("from IPython.display import HTML; HTML('<b>1</b>')", "text/html"),
    ],
)
def test_a_checked_cell_whose_output_cannot_be_compared_is_refused(write, code, why):
    with pytest.raises(NotebookError, match=why):
        build(write(f'# %% tags=["nbval-check-output"]\n{code}\n'))


def test_a_cell_that_fails_is_reported_with_its_error(write):
    with pytest.raises(NotebookError, match="ZeroDivisionError"):
        build(write("# %%\n1 / 0\n"))


# The proof that a notebook is what its source builds


def test_a_notebook_as_built_passes_the_check(write, built):
    source = write()
    source.with_suffix(".ipynb").write_text(built)
    assert check(source) == []


def tampered_source(book):
    book["cells"][3]["source"] = ["print(4)"]


def tampered_tag(book):
    book["cells"][4]["metadata"] = {}


def tampered_bootstrap(book):
    book["cells"][2]["source"] = ["import onelaunch"]


def deleted_cell(book):
    del book["cells"][5]


def saved_by_jupyter(book):
    book["metadata"]["language_info"] = {"name": "python", "version": "3.11.7"}


def saved_outputs(book):
    book["cells"][3]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": ["0.3\n"]}]


def uncounted(book):
    book["cells"][4]["execution_count"] = None


def no_oracle(book):
    book["cells"][4]["outputs"] = []


def changed_id(book):
    book["cells"][4]["id"] = "other"


def attachment(book):
    book["cells"][0]["attachments"] = {"a.png": {"image/png": "AAAA"}}


@pytest.mark.parametrize(
    "tamper",
    [
        tampered_source, tampered_tag, tampered_bootstrap, deleted_cell, saved_by_jupyter, saved_outputs, uncounted,
        no_oracle, changed_id, attachment,
    ],
)  # fmt: skip
def test_a_notebook_that_was_changed_by_hand_fails_the_check(write, built, tamper):
    source = write()
    target = source.with_suffix(".ipynb")
    book = json.loads(built)
    tamper(book)
    target.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n")
    assert check(source)


def test_the_check_shows_the_lines_that_differ(write, built):
    source = write(SOURCE.replace("1 + 1", "1 + 2"))
    source.with_suffix(".ipynb").write_text(built)
    (problem,) = check(source)
    assert '-print("checked", 1 + 2)' in problem
    assert '+print("checked", 1 + 1)' in problem


def test_a_notebook_that_is_missing_fails_the_check(write):
    assert any("missing" in problem for problem in check(write()))


# What a notebook may not contain


@pytest.mark.parametrize(
    "text",
    [
        "```{note}\nx\n```",
        ":::{warning}\nx\n:::",
        "See {doc}`intro`.",
        "(label)=\n## Heading",
        "The value is {{ x }}.",
        "![](a.png)",
        "![a plot](https://example.org/a.png)",
        "[gone](missing.md)",
        '<img src="a.png">',
    ],
)
def test_markdown_that_shows_raw_or_loads_from_elsewhere_is_found(write, text):
    assert problems(write, f'# %% [markdown]\n"""\n{text}\n"""\n')


@pytest.mark.parametrize(
    "text",
    [
        "<details><summary>Answer</summary>\n\nBecause.\n\n</details>",
        "```python\nx = {'a': 1}\n```",
        "The dict `{a}` and the list `[x](y)` in code.",
        r"Braces in math, $\\text{bytes} \\times \\frac{1}{2}$.",
        "[another chapter](01_example.py) and [a page](https://example.org/x) and [below](#below)",
        "![a plot of two lines](plot.svg)",
    ],
)
def test_plain_markdown_passes(write, text, tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "plot.svg").write_text("<svg/>")
    assert problems(write, f'# %% [markdown]\n"""\n{text}\n"""\n') == []


@pytest.mark.parametrize(
    "cell",
    [
        '# %% tags=["nbval-check-ouput"]\nprint(1)',
        '# %% tags=["nbval-skip"]\nprint(1)',
        '# %% tags=["raises-exception"]\n1 / 0',
        "# %%\n# NBVAL_SKIP\nprint(1)",
        "# %%\n# %timeit 1",
        "# %%\n# !pip install x",
    ],
)
def test_code_that_would_go_unchecked_is_found(write, cell):
    assert problems(write, cell + "\n")


def problems(write, text: str) -> list[str]:
    source = write(TITLE + "\n" + text)
    return lint(assemble(source, SITE, source.parents[1]), source)


# The address of the repository


def test_the_address_of_the_repository_stands_in_one_place():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("not a git checkout, so what is committed is not known")
    name = repository().url.split("://", 1)[1].split("/", 1)[1].encode()
    holders = {
        path
        for path in listed.stdout.split("\0")
        if path and not path.endswith(".ipynb") and (ROOT / path).is_file() and name in (ROOT / path).read_bytes()
    }
    assert holders == {CONFIG.name}


def test_the_bootstrap_cell_gets_the_address_from_the_configuration():
    assert "{pip}" in BOOTSTRAP
    assert repository().pip not in BOOTSTRAP
