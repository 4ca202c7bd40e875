"""The engine under the sanitizer, in all its configurations: there is nothing to be found in it, so a finding is a
false alarm. ``benchmarks/sanitizer.py`` counts them.

Requests of different lengths and sampling parameters join and leave while others decode, so batches grow, shrink and
are padded. On the tape ``LLM(sanitize=True)`` checks each replay. What ``graph="rerun"`` runs again instead of a replay
is given to ``sanitize`` as a step: captured on dummy requests, as the engine does it, and replayed on the batch.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any
from unittest.mock import patch

import torch

from onelaunch import LLM, SamplingParams, sanitize
from onelaunch.engine import llm as llm_module
from onelaunch.engine.core import Batch
from onelaunch.engine.padded import padding_of
from onelaunch.sanitizer import FindingsError, Report

# Prompts, and when they come: after so many steps of the engine.
REQUESTS = (
    (0, [5, 6, 7], SamplingParams(max_tokens=9)),
    (0, [9], SamplingParams(max_tokens=5, temperature=0.8, seed=1)),
    (0, [11, 12] * 9, SamplingParams(max_tokens=3, temperature=1.0, top_k=5, seed=2)),
    (3, [30] * 16, SamplingParams(max_tokens=6, temperature=1.0, top_p=0.9, seed=3)),
    (4, [7, 8, 9, 10], SamplingParams(max_tokens=4, temperature=1.5, seed=4)),
    (6, [1, 2], SamplingParams(max_tokens=4)),
)


@dataclass(frozen=True)
class Configuration:
    """A way to run the engine. sizes: those that are recorded. rightly: the kinds of finding that are none of ours to
    avoid: the reference backend reads lengths on the host, and that has to be said."""

    model: str = "random:llama"
    dtype: str = "float32"
    graph: str = "tape"
    attention_backend: str = "gather"
    page_size: int = 16
    sizes: tuple[int, ...] = (4,)
    pages: int | None = None
    rightly: tuple[str, ...] = ()


def configurations() -> Iterator[Configuration]:
    """All that are examined."""
    tape = Configuration()
    for model, page_size, sizes in itertools.product(
        ("random:llama", "random:qwen3"), (1, 4, 16, 64), ((1, 2, 4), (6,), (3, 5), (2,))
    ):
        yield replace(tape, model=model, page_size=page_size, sizes=sizes)
    for model in ("random:llama", "random:qwen3"):
        yield replace(tape, model=model, dtype="bfloat16", sizes=(3, 6))
        yield replace(tape, model=model, pages=9, page_size=4, sizes=(2, 4))  # requests wait for pages
        for page_size in (4, 16):
            yield replace(tape, model=model, graph="rerun", page_size=page_size)
    for model in ("random:llama", "random:qwen3"):
        yield replace(tape, model=model, graph="rerun", attention_backend="torch", rightly=("host-sync",))
    yield replace(tape, model="smollm2-135m")


def examine(config: Configuration) -> dict[str, Any]:
    """Run one configuration. ``findings`` lists the false alarms; ``same_text`` says whether graphs changed a token,
    where none of them is rightly refused."""
    with warnings.catch_warnings(), patch.object(llm_module, "PAGE_SIZE", config.page_size):
        warnings.simplefilter("ignore")  # batches above the largest size are part of this
        with _engine(config, graph="off") as plain:
            expected = _texts(plain)
        reports: list[Report] = []
        with _engine(config, sanitize=config.graph == "tape", **_graphs(config)) as llm:
            if config.graph == "rerun":
                for size, graph in llm.engine.runner.graph_map.items():
                    _sanitize_reruns(llm, size, graph, reports.append)
            try:
                same = _texts(llm) == expected
            except FindingsError as error:
                reports, same = [error.report], False
            stats, checker = llm.engine.runner.stats, llm.engine.runner.checker
            assert checker is None or reports or checker.steps == stats.replays
    found = [finding for report in reports for finding in report]
    return {
        **{name: value for name, value in asdict(config).items() if value not in (None, ())},
        "steps": stats.replays,
        "padded_rows": stats.padded_rows,
        "eager_steps": stats.eager_fallbacks,
        **({} if config.rightly else {"same_text": same}),
        "named": sorted({finding.kind for finding in found if finding.kind in config.rightly}),
        "findings": [f"{f.kind} {f.tensor or ''}: {f.why}" for f in found if f.kind not in config.rightly],
    }


def _graphs(config: Configuration) -> dict[str, Any]:
    return {"graph": config.graph, "cuda_graph_bs": list(config.sizes)}


def _engine(config: Configuration, **settings: Any) -> LLM:
    return LLM(
        config.model,
        device="cpu",
        dtype=getattr(torch, config.dtype),
        attention_backend=config.attention_backend,
        max_running_req=6,
        max_seq_len_override=64,
        num_page_override=config.pages,
        **settings,
    )


def _texts(llm: LLM) -> list[list[int]]:
    """The tokens of all requests, which join as the steps go by."""
    handles, ahead = [], list(REQUESTS)
    for step in itertools.count():
        while ahead and ahead[0][0] <= step:
            _, prompt, params = ahead.pop(0)
            handles.append(llm.submit(prompt, replace(params, ignore_eos=True)))
        if llm.step() is None and not ahead:
            break
    return [handle.result()["token_ids"] for handle in handles]


def _sanitize_reruns(llm: LLM, size: int, graph: Any, report: Callable[[Report], None]) -> None:
    """Let each replay of ``graph`` be a run of the sanitizer, which leaves behind what the replay would."""
    runner: Any = llm.engine.runner
    backend: Any = llm.engine.context.attn_backend
    step = graph._step

    def fill(batch: Batch) -> None:
        runner.buffer.copy_from(batch)
        backend.prepare_for_replay(batch)

    def replay() -> None:
        batch, dummies = runner.batch, Batch([], "decode")
        dummies.padded_reqs = [runner.dummy_req] * size
        dummies.input_ids, dummies.positions = torch.zeros(2, size, dtype=torch.int64)
        dummies.out_loc = torch.full((size,), runner.dummy_req.pages[0] * llm.engine.page_size)
        backend.prepare_metadata(dummies)

        def padding(i: int) -> list[torch.Tensor]:
            views = padding_of(batch, runner.buffer, backend.fixed, llm.engine.context.kv_cache, 0)
            return [view.view for view in views if view.view.is_floating_point()]

        owners = (runner.buffer, backend.fixed, llm.engine.context.kv_cache, runner.model)
        report(sanitize(lambda i: fill(batch if i else dummies), step, 1, owners, padding))

    whole = runner.replay

    def noted(batch: Batch) -> torch.Tensor:
        runner.batch = batch
        return whole(batch)

    runner.replay, graph.replay = noted, replay


if __name__ == "__main__":
    for one in configurations():
        print(examine(one), flush=True)
