"""False alarms of the sanitizer on transformers' models and on the engine, and what checking a step of SmolLM2 takes.

    python benchmarks/sanitizer.py              everything; saves what came out
    python benchmarks/sanitizer.py --engine     the engine and the time alone; what was saved of the models stays
    python benchmarks/sanitizer.py llama opt    these models alone; prints, saves nothing

The models' decode steps are those of ``benchmarks/transformers_models.py``, prepared by the host as transformers'
``generate`` does it. They replay bit for bit, so a finding is a false alarm. Each model runs in a process of its own.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import statistics
import time
import warnings
from typing import Any

import torch

from common import save
from decode_step import Decoder
from onelaunch import LLM, SamplingParams, sanitize
from onelaunch.viz.measured import measured
from sanitized_engine import configurations as sanitized_engine_configurations
from sanitized_engine import examine as examine_engine
from transformers_models import build, guarded, reason

ROUNDS = 3
BATCH = 8
KEPT = ("models_date", "clean", "findings", "rows")


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


def step_ms(requests: int, **settings: Any) -> float:
    """Median milliseconds of a decode step of SmolLM2, of the processor's time, which others on it do not add to."""
    params = SamplingParams(max_tokens=12, ignore_eos=True)
    with LLM("smollm2-135m", device="cpu", max_running_req=BATCH, max_seq_len_override=64, **settings) as llm:
        for _ in range(requests):
            llm.submit("The capital of France is", params)
        llm.step()  # the prefill
        times: list[float] = []
        start = time.process_time()
        while llm.step() is not None:
            times.append(1e3 * (time.process_time() - start))
            start = time.process_time()
    return statistics.median(times)


def sanitized_models(names: list[str]) -> dict[str, Any]:
    """The rows of ``names``, or of all models that replay, and how many are clean."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    known = measured("transformers_models")["rows"]
    replayed = [name for name, row in known.items() if row["outcome"] == "bitwise" and row["how"] == "prepared"]
    rows: dict[str, Any] = {}
    for name in names or replayed:
        rows[name] = row = guarded(name, examine)
        print(f"{row['outcome']:10s} {name} {row.get('reason', '')}{row.get('findings', '')}", flush=True)
    counts = {kind: sum(row["outcome"] == kind for row in rows.values()) for kind in ("clean", "findings")}
    print(counts)
    return {"models_date": today(), **counts, "rows": rows}


def sanitized_engine() -> dict[str, Any]:
    """The rows of all configurations of the engine, and how many steps were checked with how many findings."""
    rows = []
    for configuration in sanitized_engine_configurations():
        rows.append(examine_engine(configuration))
        print(rows[-1], flush=True)
    return {
        "date": today(),
        "configurations": len(rows),
        "steps": sum(row["steps"] for row in rows),
        "padded_rows": sum(row["padded_rows"] for row in rows),
        "findings": sum(len(row["findings"]) for row in rows),
        "rows": rows,
    }


def checked_step() -> dict[str, Any]:
    """What a checked step takes beside an eager one of the same requests: a full batch, and one with a padded row."""
    figures: dict[str, Any] = {
        "date": today(),
        "clock": "time.process_time, one thread",
        "model": "smollm2-135m",
        "batch": BATCH,
    }
    for name, requests in (("", BATCH), ("padded_", BATCH - 1)):
        figures[f"{name}eager_ms"] = step_ms(requests, graph="off", attention_backend="gather")
        figures[f"{name}checked_ms"] = step_ms(requests, graph="tape", cuda_graph_bs=[BATCH], sanitize=True)
        ratio = figures[f"{name}checked_ms"] / figures[f"{name}eager_ms"]
        print(f"{requests} requests as {BATCH}: a checked step of SmolLM2 takes as long as {ratio:.1f} eager steps")
    return figures


def today() -> str:
    """The date, as it is saved."""
    return datetime.date.today().isoformat()


def main() -> None:
    """Sanitize models and engine, and time a checked step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="models of transformers; print only")
    parser.add_argument("--engine", action="store_true", help="keep what was saved of the models")
    parser.add_argument("--time", action="store_true", help="measure the time again, and keep the rest")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    if args.names:
        sanitized_models(args.names)
        return
    known = measured("sanitizer") if args.engine or args.time else {}
    models: dict[str, Any] = {name: known[name] for name in KEPT if name in known} or sanitized_models([])
    engine = known["engine"] if args.time else sanitized_engine()
    print(save("sanitizer", {"rounds": ROUNDS, "step": checked_step(), "engine": engine, **models}))


if __name__ == "__main__":
    main()
