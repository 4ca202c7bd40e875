"""What a chapter's source may not contain: what shows raw in Colab, loads from another host, or goes unchecked.

Markdown that only Sphinx understands belongs in `book/`; `<details>` is fine everywhere.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from nbformat import NotebookNode

from notebook_build import CHECKED

# A misspelt tag would turn a check off without a word, so only these are known.
SHOWN = {f"{do}-{what}" for do in ("hide", "remove") for what in ("cell", "input", "output")}
TAGS = {CHECKED, "raises-exception", "try"} | SHOWN
TAG_FAMILIES = ("answer:", "check:")

MYST = {
    r"^\s*(`{3,}|~{3,}|:{3,})\s*\{": "a MyST directive",
    r"^\s*:{3,}": "a MyST fence",
    r"(?<![`\w])\{[a-zA-Z][\w:+.-]*\}`": "a MyST role",
    r"^\([\w.-]+\)=\s*$": "a MyST target",
    r"^\+{3}(\s|$)": "a MyST block break",
    r"\{\{.*?\}\}": "a MyST substitution",
}
NBVAL_COMMENT = r"^\s*#+\s*(NBVAL_\w+|PYTEST_VALIDATE_\w+)\s*$"
LINK = r"(?<!\\)(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)"


def lint(book: NotebookNode, source: Path) -> list[str]:
    """The problems of the notebook that `source` builds, one sentence each; empty when there are none."""
    problems = []
    for cell in book.cells:
        found = _lint_markdown(cell.source, source) if cell.cell_type == "markdown" else _lint_code(cell)
        problems += [f"cell {cell.id}: {problem}" for problem in found]
    return problems


def _lint_code(cell: NotebookNode) -> list[str]:
    problems = []
    tags = cell.metadata.get("tags", [])
    for tag in tags:
        if tag not in TAGS and not tag.startswith(TAG_FAMILIES) and cell.id != "bootstrap":
            problems.append(f"the tag {tag!r} is not known; known are {', '.join(sorted(TAGS))}")
    if "raises-exception" in tags and CHECKED not in tags:
        problems.append(f"add the tag {CHECKED!r}: otherwise a cell that stops raising passes")
    for line in cell.source.splitlines():
        if re.match(r"[%!]", line):
            problems.append(f"no magics or shell lines, nbval passes unknown ones: {line!r}")
        if re.match(NBVAL_COMMENT, line):
            problems.append(f"use the tag, not the comment: {line.strip()!r}")
    return problems


def _lint_markdown(text: str, source: Path) -> list[str]:
    problems = []
    for line in text.splitlines():
        for pattern, name in MYST.items():
            if re.search(pattern, line):
                problems.append(f"{name} shows raw in Colab, keep it in book/: {line.strip()!r}")
                break
    for image, label, target in re.findall(LINK, prose_only(text), flags=re.DOTALL):
        if image and not label.strip():
            problems.append(f"the image {target} has no alt text: say what it shows")
        if re.match(r"[a-z][a-z0-9+.-]*:", target, flags=re.IGNORECASE):
            if image:
                problems.append(f"the image {target} lies on another host: the site loads nothing from elsewhere")
        elif not target.startswith("#"):
            path = unquote(target.split("#")[0])
            if not (source.parent / path).exists():
                problems.append(f"the link to {target} leads nowhere (looked for {path} beside {source.name})")
    if re.search(r"<(img|iframe|script|link)\b", prose_only(text), flags=re.IGNORECASE):
        problems.append("use Markdown for images, and no iframe, script or link elements")
    return problems


def prose_only(text: str) -> str:
    """Markdown without its fenced blocks and code spans."""
    text = re.sub(r"^\s*(`{3,}|~{3,}).*?^\s*\1\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text)
