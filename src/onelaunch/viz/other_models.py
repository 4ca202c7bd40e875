"""What came of other people's material on the tape, counted: what replays bit for bit, and what becomes of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from onelaunch.viz.bars import bars
from onelaunch.viz.figure import Figure
from onelaunch.viz.outcomes import OUTCOME_COLORS

_OUTCOMES = ("bitwise", "refused", "different", "not run")


def transformers_models(measurement: Mapping[str, Any]) -> Figure:
    """How many of transformers' language models replay bit for bit: given masks, and making their own.

    measurement: what ``benchmarks/transformers_models.py`` saves.
    """
    rows = measurement["rows"].values()
    ways = {
        "The host makes masks and positions": Counter(row["outcome"] for row in rows),
        "The step makes its masks itself": Counter(row.get("alone", row)["outcome"] for row in rows),
    }
    groups = {}
    for title, counts in ways.items():
        counts["not run"] += counts.pop("not built", 0)
        groups[title] = {outcome: counts[outcome] for outcome in _OUTCOMES}
    versions = measurement["versions"]
    caption = (
        f"Decode steps of the {len(rows)} language models of transformers {versions['transformers']}, made small, "
        f"captured and replayed for {measurement['steps']} steps against eager. torch {versions['torch']} on a CPU, "
        f"{measurement['date']}."
    )
    what = "language models by what came of capturing their decode step"
    return bars(groups, what, caption=caption, colors=OUTCOME_COLORS)


def operators(measurement: Mapping[str, Any]) -> Figure:
    """How many operators of PyTorch's database replay bit for bit, with numbers of each type.

    measurement: what ``benchmarks/operator_database.py`` saves.
    """
    rows = measurement["rows"].values()
    groups = {}
    for dtype in ("float32", "int64"):
        counts = Counter(row[dtype]["outcome"] for row in rows if dtype in row)
        groups[f"Operators on {dtype}"] = {"bitwise": 0, "refused": 0, "different": 0, **counts}
    samples = sum(row[dtype]["samples"] for row in rows for dtype in ("float32", "int64") if dtype in row)
    caption = (
        f"The {len(rows)} entries of PyTorch's operator database, captured and replayed on other values than the "
        f"captured ones against eager, {samples:,} samples in all. torch {measurement['versions']['torch']} on a CPU, "
        f"{measurement['date']}."
    )
    return bars(groups, "operators by what came of capturing them", caption=caption, colors=OUTCOME_COLORS)
