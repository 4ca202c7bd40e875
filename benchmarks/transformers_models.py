"""Every causal language model of transformers on the tape: is a replay of its decode step what eager computes?

    python benchmarks/transformers_models.py            all of them; saves the table that the book shows
    python benchmarks/transformers_models.py llama opt  these alone; prints, saves nothing

Each architecture is built from a configuration made small, with random weights, and runs in a process of its own: one
that crashes, hangs or fills the memory does not stop the rest.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from typing import Any

import torch

from decode_step import run
from shrink import shrunk

LARGEST = 20_000_000  # parameters
SECONDS, MEMORY = 90, 12 << 30  # for each architecture


def build(model_type: str) -> Any:
    """The architecture with random weights from a fixed seed. Counts its parameters before it takes memory for them."""
    from transformers import AutoModelForCausalLM

    config = shrunk(model_type)
    if "is_decoder" in vars(config) or hasattr(config, "is_decoder"):
        config.is_decoder = True
    with torch.device("meta"):
        size = sum(p.numel() for p in AutoModelForCausalLM.from_config(config).parameters())
    if size > LARGEST:
        raise ValueError(f"{size:,} parameters")
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config).eval().float()


def examine(model_type: str) -> dict[str, Any]:
    """Build one architecture and run its decode step with the inputs that it takes."""
    try:
        model = build(model_type)
    except Exception as error:
        return {"outcome": "not built", "reason": reason(error)}
    row = {"class": type(model).__name__, "parameters": sum(p.numel() for p in model.parameters())}
    found = {}
    for how in ("prepared", "alone"):
        try:
            found[how] = run(copy.deepcopy(model), how)
        except Exception as error:
            found[how] = {"outcome": "not run", "reason": reason(error)}
    best = "alone" if found["prepared"]["outcome"] != "bitwise" == found["alone"]["outcome"] else "prepared"
    return {**row, **found[best], "how": best, "alone": found["alone"]}


def reason(error: BaseException) -> str:
    """The error in one line, with the place that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text} ({os.path.basename(frame.filename)}:{frame.lineno})"


def guarded(model_type: str) -> dict[str, Any]:
    """``examine`` in a forked process with limits."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        send.send(examine(model_type))

    process = context.Process(target=work)
    process.start()
    send.close()
    try:
        if receive.poll(SECONDS):
            return receive.recv()
        return {"outcome": "not run", "reason": f"longer than {SECONDS} s"}
    except EOFError:
        process.join()
        return {"outcome": "not run", "reason": f"the process ended with {process.exitcode}"}
    finally:
        process.kill()
        process.join()


def main(names: list[str]) -> None:
    """Examine ``names``, or every architecture there is."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    from transformers.utils import logging

    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    rows: dict[str, Any] = {}
    for name in names or MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        start = time.perf_counter()
        rows[name] = row = guarded(name)
        told = " ".join(f"{k}={v}" for k, v in row.items() if k not in ("outcome",))
        print(f"{row['outcome']:10s} {name} {time.perf_counter() - start:.1f}s {told}", flush=True)
    print(Counter(row["outcome"] for row in rows.values()))
    if not names:
        from common import save

        save("transformers_models", {"rows": rows})


if __name__ == "__main__":
    main(sys.argv[1:])
