"""What was measured for the book: JSON with hardware, versions and date inside, as the benchmarks saved it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent.parent
# An installed package carries the measurements; a checkout has them where the benchmarks write them.
_FOLDERS = (_PACKAGE / "data", _PACKAGE.parent.parent / "book" / "data")


def measured(name: str) -> dict[str, Any]:
    """The measurement ``name``, such as ``"generate"``. Raises ValueError with the names there are for any other."""
    for folder in _FOLDERS:
        path = folder / f"{name}.json"
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
    known = sorted({path.stem for folder in _FOLDERS for path in folder.glob("*.json")})
    raise ValueError(f"there is no measurement {name!r}; there is {', '.join(known) or 'none'}")
