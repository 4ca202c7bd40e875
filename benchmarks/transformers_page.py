"""Writes the book's page about transformers' models from what ``transformers_models.py`` measured.

python benchmarks/transformers_page.py
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from onelaunch.viz.measured import measured
from pages import code, plain, table

PAGE = Path(__file__).resolve().parent.parent / "book" / "transformers_models.md"

_TEXT = """# transformers on the tape

All {total} architectures that transformers {transformers} lists as causal language models, each built from a
configuration made small (few layers, 64 wide, random weights) and put through the same trial on the emulator:
the decode step is captured with a static cache, then replayed for {steps} steps. Each step's greedy tokens are
the next one's input. Logits and cache are compared with eager, bit by bit, at every step. The replays are played
in turn by the executors there are: {executors}.

{counts}

The first column is the step as transformers' own `generate` runs it with a static cache: the host prepares
positions and masks, and copies them to fixed buffers. In the second, the step gets ids and positions alone and
makes its masks itself, inside of the graph.

Measured on {hardware} with torch {torch}, {date}, by `benchmarks/transformers_models.py`. A GPU runs other
kernels for some of these layers (experts, state spaces), and none of this has been run on one.

## Refused

A capture would stop here, and the emulator says at which line. The lines are those of transformers
{transformers}.

{refused}

## Different

Captured without a word, and wrong from the second replay on. The graph holds fast what Python changed from step
to step, and a GPU has no way to know of it either.

{different}

## Right only if the host makes the masks

With a sliding window, the static cache counts its tokens in a Python number. A mask that is made from it inside
of the step has that number frozen, and {frozen} models that replay bit for bit with the host's masks come out
different with their own. {alone_refused} more are refused: where the host gives no mask, they make one as long as
the cache, whose length they read from the device, or look at the tokens for padding.

{alone}

## When a sliding window is full

From the moment its window is full, a static cache of transformers takes another branch: it shifts what it has by
one place. A graph that was captured before knows nothing of that and would have to be captured anew. So the
{windows} architectures with such layers were captured once more, with a window of {window} tokens, which the prompt
fills. Nearly all are refused at the same line, where the cache makes an index from a list of Python's.

{full}

## Bitwise

The number is how many kernels the step has. Bitwise says that a replay is what eager is. Whether eager is right is
another question: in {agree} of these the step also gives what the same tokens give at once, without a cache, to
within 1e-4 of the largest logit. It does not in {disagree}, where eager and replay differ from that alike.

{bitwise}

## Not tried

A small configuration and a static cache are not enough for these.

{untried}
"""

# In the reader's terms what the errors of the models not tried come from.
_NOTES = {
    "blt": "it cuts bytes into patches, and its configuration does not say how many layers a cache needs",
    "cpmant": "it puts prompt tokens of its own before the text and makes its mask for a cache that grows",
    "deepseek_v4": "transformers has no static cache for attention over compressed keys",
    "gemma3n": "its parts for pictures need the package timm; `gemma3n_text` is its language model",
    "gemma4_assistant": "it drafts tokens for a Gemma 4 and reads that model's cache; it has none of its own",
    "gemma4_unified_assistant": "it drafts tokens for a Gemma 4 and reads that model's cache; it has none of its own",
    "openai-gpt": "it has no cache: each step runs all of the text again",
    "prophetnet": "it makes its mask for a cache that grows",
    "xlm": "it makes its mask for a cache that grows",
}


def page(data: dict[str, Any]) -> str:
    """The page as Markdown. data: the measurement ``transformers_models``."""
    rows: dict[str, dict[str, Any]] = data["rows"]
    of = {kind: {n: r for n, r in rows.items() if r["outcome"] == kind} for kind in ("bitwise", "refused", "different")}
    untried = {name: row for name, row in rows.items() if row["outcome"].startswith("not")}
    alone = {
        name: row["alone"]
        for name, row in of["bitwise"].items()
        if row["how"] == "prepared" and row["alone"]["outcome"] in ("different", "refused")
    }
    apart = [f"`{name}`" for name, row in of["bitwise"].items() if not (row["agrees"] or 0) < 1e-4]
    ways = Counter(row["outcome"] for row in alone.values())
    windows = {name: row["full_window"] for name, row in rows.items() if "full_window" in row}
    return _TEXT.format(
        total=len(rows),
        steps=data["steps"],
        executors=", ".join(data["executors"]),
        window=data["full_window_tokens"],
        windows=len(windows),
        hardware=data["hardware"]["cpu"],
        date=data["date"],
        **{name: data["versions"][name] for name in ("torch", "transformers")},
        counts=table(
            ("", "masks from the host", "masks made in the step"),
            [(kind, str(first), str(second)) for kind, (first, second) in counts(data).items()],
        ),
        refused=table(
            ("model", "call", "rule", "line"),
            [(f"`{name}`", _call(r), r["rule"], f"`{short(r['where'])}`") for name, r in of["refused"].items()],
        ),
        different=table(
            ("model", "what stays as it was"), [(f"`{name}`", reason(row)) for name, row in of["different"].items()]
        ),
        agree=len(of["bitwise"]) - len(apart),
        disagree=", ".join(apart),
        frozen=ways["different"],
        alone_refused=ways["refused"],
        alone=table(
            ("what happens", "models"),
            [(what, code(names)) for what, names in _grouped(alone).items()],
        ),
        full=table(
            ("what happens", "models"),
            [(what, code(names)) for what, names in _grouped(windows).items()],
        ),
        bitwise=", ".join(f"`{name}` {row['kernels']}" for name, row in of["bitwise"].items()) + ".",
        untried=table(
            ("model", "why"),
            [(f"`{name}`", _NOTES.get(name) or plain(row["reason"])) for name, row in untried.items()],
        ),
    )


def counts(data: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """How many architectures had which outcome: as the host prepares the step, and alone."""
    kinds = ("bitwise", "refused", "different", "not run", "not built")
    prepared = Counter(row["outcome"] for row in data["rows"].values())
    alone = Counter(row.get("alone", row)["outcome"] for row in data["rows"].values())
    return {kind: (prepared[kind], alone[kind]) for kind in kinds}


def reason(row: dict[str, Any]) -> str:
    """Why a row is refused or different, in Markdown."""
    if row["outcome"] == "refused":
        return f"refused: {_call(row)}, {row['rule']}, `{short(row['where'])}`"
    if row["outcome"] == "not run":
        return "eager cannot run it either: " + plain(row["reason"])
    if row["outcome"] == "bitwise":
        return "bitwise"
    found = [re.fullmatch(r"(\S+) \((.*)\)", text) for text in row.get("moved", [])]
    moved = {
        f"`{hit[1].rsplit('.', 1)[-1]}` is new memory after each step, `{short(hit[2])}`": 0 for hit in found if hit
    }
    return "; ".join([*moved, *(_frozen(text) for text in row["frozen"])])


def _call(row: dict[str, Any]) -> str:
    """The call that was refused: code as code, a phrase as it is."""
    call: str = row["call"]
    return call if " " in call.partition("(")[0] else f"`{call}`"


def _frozen(text: str) -> str:
    hit = re.fullmatch(r"(\w+)=(.*), then (.*) \((.*)\)", text)
    if hit:
        return f"a number stays {hit[2]}, where eager has {hit[3]} by then, `{short(hit[4])}`"
    hit = re.fullmatch(r"(.*), then (.*) \((.*)\)", text)
    assert hit is not None, text
    return f"the kernel stays `{hit[1]}`, where eager runs `{hit[2]}` by then, `{short(hit[3])}`"


def short(where: str) -> str:
    """``modeling_opt.py:40`` of ``transformers/models/opt/modeling_opt.py:40``: names of files tell models apart."""
    return where.rsplit("/", 1)[-1]


def _grouped(rows: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, row in rows.items():
        prefix = "different: " if row["outcome"] == "different" else ""
        what = re.sub(r"a number stays \d+, where eager has \d+ by then", "a count of tokens stays", reason(row))
        groups.setdefault(prefix + what, []).append(name)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


if __name__ == "__main__":
    PAGE.write_text(page(measured("transformers_models")), encoding="utf-8")
