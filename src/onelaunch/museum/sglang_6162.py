"""One of two tables of pages is kept up to date."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from onelaunch.museum.base import Case, Exhibit


def build(names: tuple[str, ...]) -> Case:
    fixed = SimpleNamespace(table=torch.zeros(2), local_table=torch.zeros(2))
    meta = SimpleNamespace()
    cache = torch.arange(8.0)

    def prepare(i: int) -> None:
        first = max(0, i - 1)  # the window begins to move at i = 2
        fresh = {
            "table": torch.tensor([i, i + 1]),
            "local_table": torch.tensor([first, first + 1]),
        }
        for name in names:
            getattr(fixed, name).copy_(fresh[name])
        if i == 0:
            fresh = {name: value.long() for name, value in vars(fixed).items()}
            fixed.__dict__.update(fresh)
        meta.__dict__.update(fresh)

    def step() -> torch.Tensor:
        return cache[meta.table] + 10 * cache[meta.local_table]

    return Case(prepare, step, owners={"meta": meta, "fixed": fixed})


def broken() -> Case:
    return build(("table",))


def mended() -> Case:
    return build(("table", "local_table"))


EXHIBIT = Exhibit(
    key="sglang-6162",
    title="A second set of metadata is forgotten",
    topic="stale input",
    reports=("sgl-project/sglang#6162",),
    seen="Llama 4 has layers that look at a local window, with metadata of their own. The graph did not bring them up to "
    "date. Short texts were right; beyond 8,192 tokens came gibberish.",
    mend="Every table that a layer reads has a fixed buffer and is copied before each replay.",
    silent=True,
    findings=(("stale-input", "fixed.local_table"),),
    broken=broken,
    mended=mended,
)
