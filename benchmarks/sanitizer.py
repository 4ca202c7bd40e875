"""False alarms of the sanitizer on transformers' models, and what checking a step of SmolLM2 takes.

    python benchmarks/sanitizer.py              every model that replays bit for bit; saves what came out
    python benchmarks/sanitizer.py llama opt    these alone; prints, saves nothing

The decode steps are those of ``benchmarks/transformers_models.py``, prepared by the host as transformers' ``generate``
does it. They replay bit for bit, so a finding is a false alarm. Each model runs in a process of its own.
"""

from __future__ import annotations

import copy
import statistics
import sys
import time
import warnings
from typing import Any

import torch

from common import save
from decode_step import Decoder
from onelaunch import LLM, SamplingParams, sanitize
from onelaunch.viz.measured import measured
from transformers_models import build, guarded, reason

ROUNDS = 3
BATCH = 8


def examine(model_type: str) -> dict[str, Any]:
    """Sanitize the decode step of one architecture: ``outcome`` is ``clean`` or ``findings``."""
    try:
        decoder = Decoder(build(model_type), "prepared")
        decoder.start()
        ahead = copy.deepcopy(decoder)
        inputs = []
        for _ in range(ROUNDS + 1):
            with torch.no_grad():
                ahead.append(ahead.step())
            inputs.append(copy.deepcopy(ahead.prepare()))
            ahead.fill(inputs[-1])
    except Exception as error:
        return {"outcome": "not built", "reason": reason(error)}

    @torch.no_grad()
    def step() -> torch.Tensor:
        return decoder.step()

    owners = {"model": decoder.model, "inputs": decoder.inputs, **decoder.caches}
    try:
        report = sanitize(lambda i: decoder.fill(inputs[i]), step, ROUNDS, owners)
    except Exception as error:
        return {"outcome": "not run", "reason": reason(error)}
    row: dict[str, Any] = {"outcome": "findings" if report else "clean", "kernels": report.kernels}
    if report:
        row["findings"] = [f"{finding.kind} {finding.tensor or ''}: {finding.why}" for finding in report]
    return row


def step_ms(**settings: Any) -> float:
    """Median milliseconds of a decode step of SmolLM2."""
    params = SamplingParams(max_tokens=12, ignore_eos=True)
    with LLM("smollm2-135m", device="cpu", max_running_req=BATCH, max_seq_len_override=64, **settings) as llm:
        for _ in range(BATCH):
            llm.submit("The capital of France is", params)
        llm.step()  # the prefill
        times: list[float] = []
        start = time.perf_counter()
        while llm.step() is not None:
            times.append(1e3 * (time.perf_counter() - start))
            start = time.perf_counter()
    return statistics.median(times)


def main(names: list[str]) -> None:
    """Sanitize ``names``, or all models that replay; then time a checked step beside an eager one."""
    from transformers.utils import logging

    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    known = measured("transformers_models")["rows"]
    replayed = [name for name, row in known.items() if row["outcome"] == "bitwise" and row["how"] == "prepared"]
    rows: dict[str, Any] = {}
    for name in names or replayed:
        rows[name] = row = guarded(name, examine)
        print(f"{row['outcome']:10s} {name} {row.get('reason', '')}{row.get('findings', '')}", flush=True)
    counts = {kind: sum(row["outcome"] == kind for row in rows.values()) for kind in ("clean", "findings")}
    eager = step_ms(graph="off", attention_backend="gather")
    checked = step_ms(graph="tape", cuda_graph_bs=[BATCH], sanitize=True)
    print(f"{counts}; a checked step of SmolLM2 takes as long as {checked / eager:.1f} eager steps")
    if not names:
        step = {"model": "smollm2-135m", "batch": BATCH, "eager_ms": eager, "checked_ms": checked}
        print(save("sanitizer", {"rounds": ROUNDS, **counts, "step": step, "rows": rows}))


if __name__ == "__main__":
    main(sys.argv[1:])
