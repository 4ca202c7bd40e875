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
from collections.abc import Callable
from typing import Any

import torch

from common import save
from decode_step import STEPS, run
from onelaunch.tape import native
from onelaunch.tape.executors import EXECUTORS
from onelaunch.viz.measured import measured
from shrink import LONGEST, shrunk
from transformers_page import PAGE, page

LARGEST = 20_000_000  # parameters
FULL_AT = 4  # tokens, fewer than the prompt has
SECONDS, MEMORY = 90, 12 << 30  # for each architecture


def build(model_type: str, window: int = LONGEST) -> Any:
    """The architecture with random weights from a fixed seed. Counts its parameters before it takes memory for them.

    window: see ``shrunk``.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    kind: Any = MODEL_FOR_CAUSAL_LM_MAPPING[CONFIG_MAPPING[model_type]]
    config = shrunk(model_type, window)
    if kind.config_class is getattr(config, "sub_configs", {}).get("text_config"):
        config = config.get_text_config()
    if hasattr(config, "is_decoder"):
        config.is_decoder = True
    with torch.device("meta"):
        size = sum(p.numel() for p in kind._from_config(copy.deepcopy(config)).parameters())
    if size > LARGEST:
        raise ValueError(f"{size:,} parameters")
    torch.manual_seed(0)
    return kind._from_config(config).eval().float()


def examine(model_type: str) -> dict[str, Any]:
    """Build one architecture and run its decode step: prepared by the host, alone, and with its windows full."""
    try:
        model = build(model_type)
    except Exception as error:
        return {"outcome": "not built", "reason": reason(error)}
    found = {how: attempt(model, how) for how in ("prepared", "alone")}
    worth = {"bitwise": 2, "refused": 1, "different": 1, "not run": 0}
    best = max(found, key=lambda how: worth[found[how]["outcome"]])  # the first of equals
    size = sum(p.numel() for p in model.parameters())
    row = {"class": type(model).__name__, "parameters": size, "how": best, **found[best], "alone": found["alone"]}
    if has_windows(model):
        row["full_window"] = attempt(build(model_type, window=FULL_AT), "prepared")
    return row


def attempt(model: Any, how: str) -> dict[str, Any]:
    """``run`` on a copy of the model, which may keep a state of its own."""
    try:
        return run(copy.deepcopy(model), how)
    except Exception as error:
        return {"outcome": "not run", "reason": reason(error)}


def has_windows(model: Any) -> bool:
    """Whether some of the layers keep only the last tokens."""
    from transformers import StaticCache

    try:
        return any(StaticCache(config=model.config, max_cache_len=1).is_sliding)
    except Exception:
        return False


def reason(error: BaseException) -> str:
    """The error in one line, with the place that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text} ({os.path.basename(frame.filename)}:{frame.lineno})"


def guarded(model_type: str, examine: Callable[[str], dict[str, Any]] = examine) -> dict[str, Any]:
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
        executors = [name for name in EXECUTORS if name != "native" or native.is_built()]
        about = {"executors": executors, "steps": STEPS, "full_window_tokens": FULL_AT}
        save("transformers_models", {**about, "rows": rows})
        PAGE.write_text(page(measured("transformers_models")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
