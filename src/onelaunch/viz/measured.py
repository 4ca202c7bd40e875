"""What was measured for the book: JSON with hardware, versions and date inside, as the benchmarks saved it.

It travels in the package, so that a chapter can draw it where there is nothing but the package: on Colab, or in an
empty folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "data"


def measured(name: str) -> dict[str, Any]:
    """The measurement ``name``, such as ``"generate"``. Raises ValueError with the names there are for any other."""
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(path.stem for path in FOLDER.glob("*.json"))) or "none"
        raise ValueError(f"there is no measurement {name!r}; there is {known}")
    return json.loads(path.read_text(encoding="utf-8"))
