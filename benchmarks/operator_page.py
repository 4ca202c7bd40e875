"""Writes the book's page about PyTorch's operators from what ``operator_database.py`` measured.

python benchmarks/operator_page.py
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onelaunch.viz.measured import measured
from pages import code, plain, table

PAGE = Path(__file__).resolve().parent.parent / "book" / "operators.md"
DTYPES = ("float32", "int64", "complex64")
REPLAYED = ("bitwise", "tolerance", "unwritten")

_TEXT = """# PyTorch's operators on the tape

PyTorch tests its operators with a database of its own, which knows for each what it may be called with. Here all
{total} entries of torch {torch} go through one trial on the emulator. An operator is captured with one sample. Then the
values of another sample are copied into the tensors that were captured, and the graph is replayed. Its results, all its
arguments and the state of the random generator must be what eager leaves, bit by bit. The replays are played in turn by
the executors there are: {executors}. Up to {samples} samples were taken for each operator and type of number,
{trials} in all.

{counts}

An operator counts as bitwise if every sample that was not refused replayed bit for bit, and as refused if every one
was; samples with empty tensors count only where there are no others. No rule of CUDA's refuses {capturable} of the
operators, and **{replayed} of these replay: {percent:.1f} %**. {wrong} replays wrongly.

{in_place} of the operators have a variant that works in place, and these went through the same trial:
{in_place_counts}.

Measured on {hardware} with torch {torch}, {date}, by `benchmarks/operator_database.py`. Nothing here has been run on a
GPU. The rules follow PyTorch's CUDA sources; whether a GPU refuses each of these operators was not tried. One refusal
is too strict: `narrow` with a start in host memory, which a GPU would capture.

## Refused

Whatever the sample, a capture stops here. The rules are those of
[chapter 4](../notebooks/04_what_a_capture_refuses.ipynb).

{refused}

## Refused with some arguments

These replay bit for bit with some samples, and with others they are refused.

{partly}

## Not bit for bit

{tolerance}

## Not emulated

{unemulated}

## Different

{different}

## Nothing to compare

{views} of the operators that replay record no kernel, whatever the sample: they are views, or ask for a property. Their
results are the arguments' own memory, so they follow it. And these make memory without writing to it, so that only
shape, strides and type were compared: {unwritten}.

## Not run

{not_run}
"""

# What a GPU program waits for, by what was called, in PyTorch's CUDA code.
_FLAGS = "the solver leaves an error flag on the device, and PyTorch reads it before it returns"
_SIZE = "the host reads how many there are, to make room for them"
_NOTES = {
    ".item()": "the value is needed on the host: as an argument, or for a check of the arguments",
    ".to('cpu')": "a copy to ordinary host memory waits for the device",
    "a tensor from host data": "a list is made into a tensor in host memory and copied to the device",
    "allclose()": "it compares, and the host reads the answer",
    "aten::_sparse_mm_reduce_impl": "its argument is sparse, and it has no CUDA kernel",
    "aten::sparse_sampled_addmm": "its argument is sparse: the tape knows plain memory only",
    "bincount()": "the host reads the largest value, to make room for as many counts",
    "cholesky()": _FLAGS,
    "cholesky_inverse()": _FLAGS,
    "ctc_loss()": "the lengths, which are Python numbers, are copied to the device",
    "equal()": "it compares, and the host reads the answer; `cov`, `corrcoef`, `istft` check their arguments with it",
    "histc()": "bounds that are left open come from the data, and the host reads them",
    "index_fill()": "a value that is a tensor is read with `.item()`",
    "indexing with a boolean mask": "it is turned into indices with `nonzero`",
    "isin()": "with many candidates it makes both sides unique first",
    "linalg_check_errors()": _FLAGS,
    "linalg_eig()": _FLAGS,
    "linalg_eigh()": _FLAGS,
    "linalg_lstsq()": _FLAGS,
    "linalg_matrix_exp()": "the host reads the norm, and picks a polynomial by it",
    "linalg_pinv()": _FLAGS,
    "linalg_svd()": _FLAGS,
    "linspace()": "ends that are tensors are read with `.item()`",
    "logspace()": "ends that are tensors are read with `.item()`",
    "masked_fill()": "a value that is a tensor is read with `.item()`",
    "masked_select()": _SIZE,
    "nonzero()": _SIZE,
    "normal()": "the host checks that no deviation is negative",
    "repeat_interleave()": "the host reads the sum of the repeats, unless it is given `output_size`",
    "searchsorted()": "the host checks the range of the sorter",
    "segment_reduce()": "the host checks that no length is negative",
    "to_sparse()": _SIZE,
    "torch.tensor(host data)": "the numbers are copied from ordinary host memory, which waits",
    "torch.tensor(number, device=...)": "the number is copied from ordinary host memory, which waits",
    "unique2()": _SIZE,
    "unique_consecutive()": _SIZE,
    "unique_dim()": _SIZE,
}


def page(data: dict[str, Any]) -> str:
    """The page as Markdown. data: the measurement ``operators``."""
    rows: dict[str, dict[str, Any]] = data["rows"]
    outcomes = Counter(row["outcome"] for row in rows.values())
    found = figures(data)
    partly = {name: row for name, row in rows.items() if row["outcome"] in REPLAYED and refusals(row)}
    return _TEXT.format(
        total=len(rows),
        samples=data["samples"],
        executors=", ".join(data["executors"]),
        trials=f"{found['samples']:,}",
        torch=data["versions"]["torch"],
        hardware=data["hardware"]["cpu"],
        date=data["date"],
        counts=counts_table(rows),
        capturable=found["capturable"],
        replayed=found["replayed"],
        percent=found["percent"],
        wrong=outcomes["different"] or "None",
        in_place=len(data["in_place"]),
        in_place_counts=", ".join(
            f"{count} {outcome}"
            for outcome, count in Counter(row["outcome"] for row in data["in_place"].values()).most_common()
        ),
        refused=_by_call({name: row for name, row in rows.items() if row["outcome"] == "refused"}),
        partly=_by_call(partly),
        tolerance=_reasons(
            rows,
            "tolerance",
            "None: what replays does so bit for bit, and no operator gave other bits run twice eagerly.",
        ),
        unemulated=_reasons(rows, "not emulated", "None: every refusal has a rule of CUDA's behind it."),
        different=_reasons(rows, "different", "None."),
        views=sum(row["outcome"] in REPLAYED and kernels(row) == 0 for row in rows.values()),
        unwritten=code([name for name, row in rows.items() if row["outcome"] == "unwritten"]),
        not_run=_reasons(rows, "not run", "None."),
    )


def figures(data: dict[str, Any]) -> dict[str, Any]:
    """``samples``, ``capturable``, ``replayed``, ``percent``: how many, and what part of them replays."""
    rows = data["rows"].values()
    replayed = sum(row["outcome"] in REPLAYED for row in rows)
    capturable = sum(row["outcome"] not in ("refused", "not run") for row in rows)
    return {
        "samples": sum(each["samples"] for row in rows for each in by_dtype(row)),
        "capturable": capturable,
        "replayed": replayed,
        "percent": 100 * replayed / capturable,
    }


def by_dtype(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a row has for each type of number."""
    yield from (row[dtype] for dtype in DTYPES if dtype in row)


def refusals(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Rule and call of all that was refused, each once, whatever the number in ``torch.tensor(0, device=...)``."""
    found = [(rule, call) for each in by_dtype(row) for rule, call in each.get("refusals", [])]
    return list(
        dict.fromkeys((rule, re.sub(r"tensor\(.*, device", "tensor(number, device", call)) for rule, call in found)
    )


def kernels(row: dict[str, Any]) -> int:
    """How many kernels the longest of a row's tapes has."""
    return max((each["kernels"] for each in by_dtype(row)), default=0)


def counts_table(rows: dict[str, dict[str, Any]]) -> str:
    """Outcomes by type of number, and of the operators as a whole."""
    columns = [Counter(row["outcome"] for row in rows.values())]
    columns += [Counter(row[dtype]["outcome"] for row in rows.values() if dtype in row) for dtype in DTYPES]
    kinds = ("bitwise", "tolerance", "unwritten", "refused", "not emulated", "different", "not run")
    return table(
        ("", "operators", *(f"on {dtype}" for dtype in DTYPES)),
        [(kind, *(str(column[kind]) for column in columns)) for kind in kinds if any(c[kind] for c in columns)],
    )


def _by_call(rows: dict[str, dict[str, Any]]) -> str:
    """One line for each call that is refused, with the operators that make it."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, row in rows.items():
        for refusal in refusals(row):
            groups.setdefault(refusal, []).append(name)
    return table(
        ("what is refused", "rule", "operators", "on a GPU"),
        [(_call(call), rule, code(names), _NOTES[call]) for (rule, call), names in sorted(groups.items())],
    )


def _call(call: str) -> str:
    """Code as code, a phrase as it is."""
    return call if " " in call.partition("(")[0] else f"`{call}`"


def _reasons(rows: dict[str, dict[str, Any]], outcome: str, none: str) -> str:
    found = {name: row for name, row in rows.items() if row["outcome"] == outcome}
    if not found:
        return none
    lines: list[tuple[str, ...]] = []
    for name, row in found.items():
        said = [plain(reason) for each in (row, *by_dtype(row)) for reason in each.get("reasons", [])]
        said += [_NOTES.get(call) or f"{_call(call)}, {rule}" for rule, call in refusals(row)]
        lines.append((f"`{name}`", "; ".join(dict.fromkeys(said))))
    return table(("operator", "why"), lines)


if __name__ == "__main__":
    PAGE.write_text(page(measured("operators")), encoding="utf-8")
