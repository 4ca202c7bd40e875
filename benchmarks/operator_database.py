"""PyTorch's own operator database on the tape: is a replay of each operator what eager computes?

    python benchmarks/operator_database.py             all of it; saves the table that the book shows
    python benchmarks/operator_database.py sort where  these alone; prints, saves nothing

Each operator is captured with one of its samples and replayed after the values of another of the same shapes were
copied into the captured one: the results, the arguments and the generator must be what eager leaves, bit by bit.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from typing import Any

import torch

from common import save
from onelaunch.tape import native
from onelaunch.tape.executors import EXECUTORS
from onelaunch.viz.measured import measured
from operator_page import PAGE, page
from operator_samples import name_of, operators, seeds_from_outside
from operator_trial import examine

SAMPLES = 12  # of each operator and type, at most


def main(names: list[str]) -> None:
    """Examine the operators called ``names``, or all there are."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    executors = [name for name in EXECUTORS if name != "native" or native.is_built()]
    rows: dict[str, Any] = {}
    in_place: dict[str, Any] = {}
    start = time.perf_counter()
    for op in operators():
        if names and op.name not in names:
            continue
        for found in (rows, in_place) if op.get_inplace() else (rows,):
            with seeds_from_outside():
                row = found[name_of(op)] = examine(op, SAMPLES, len(executors), found is in_place)
            if names or row["outcome"] not in ("bitwise", "refused"):
                print(f"{row['outcome']:12s} {name_of(op)}{' in place' * (found is in_place)} {row}", flush=True)
    for found in (rows, in_place):
        print(Counter(row["outcome"] for row in found.values()))
    print(f"{time.perf_counter() - start:.0f} s")
    if not names:
        save("operators", {"executors": executors, "samples": SAMPLES, "rows": rows, "in_place": in_place})
        PAGE.write_text(page(measured("operators")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
