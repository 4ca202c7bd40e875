"""What it takes to record a model's decode steps: seconds for each batch size, and memory by the order of the captures.

python benchmarks/capture.py    # SmolLM2, the 15 sizes up to 96, largest first and smallest first; saves what it found
python benchmarks/capture.py --model random:llama --ceiling 8 --no-save
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from common import save
from onelaunch import LLM, emulator
from onelaunch.engine.graph import GraphRunner
from onelaunch.padding import capture_sizes


def timed(function: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    """``function``, which adds to ``seconds`` the CPU time of each call: other programs do not lengthen that."""

    def run(*args: Any) -> Any:
        start = time.process_time()
        try:
            return function(*args)
        finally:
            seconds.append(time.process_time() - start)

    return run


def record(runner: GraphRunner, sizes: Sequence[int]) -> dict[str, Any]:
    """Record ``sizes`` in this order into one new pool. Returns CPU time and growth of each, and what the pool took."""
    pool = emulator.graph_pool_handle()
    eager: list[float] = []
    capture: list[float] = []
    recorder: Any = runner.recorder
    plain = recorder.warm_up, recorder.record
    recorder.warm_up, recorder.record = timed(plain[0], eager), timed(plain[1], capture)
    grown: list[int] = []
    graphs: list[Any] = []
    for size in sizes:
        before = pool.reserved_bytes
        graphs.append(runner.capture(size, pool))
        grown.append(pool.reserved_bytes - before)
    recorder.warm_up, recorder.record = plain
    return {
        "sizes": list(sizes),
        "kernels": [len(graph.tape.kernels) for graph in graphs],
        "eager_ms": [round(1e3 * s, 1) for s in eager],
        "capture_ms": [round(1e3 * s, 1) for s in capture],
        "grown_bytes": grown,
        "reserved_bytes": pool.reserved_bytes,
        "peak_bytes": pool.peak_bytes,
        "naive_bytes": pool.naive_bytes,
    }


def main() -> None:
    """Record the largest size alone, then all in both orders; print the table, save it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--ceiling", type=int, default=96, help="largest batch size (default: %(default)s)")
    parser.add_argument("--max-seq-len", type=int, default=256)
    parser.add_argument("--no-save", action="store_true", help="print only")
    args = parser.parse_args()

    torch.set_num_threads(1)  # so that CPU time is what a machine with nothing else to do would take
    sizes = capture_sizes(args.ceiling)
    with LLM(
        args.model,
        device="cpu",
        cuda_graph_bs=[args.ceiling],
        max_running_req=args.ceiling,
        max_seq_len_override=args.max_seq_len,
    ) as llm:
        runner = llm.engine.runner
        found = {
            "largest_alone": record(runner, sizes[-1:]),
            "largest_first": record(runner, sizes[::-1]),
            "smallest_first": record(runner, sizes),
        }
    alone = found["largest_alone"]["reserved_bytes"]
    for order, row in found.items():
        took = row["reserved_bytes"]
        print(
            f"{order}: {took / 2**20:.0f} MiB, {took / alone:.3f} of the largest alone; "
            f"{row['peak_bytes'] / 2**20:.1f} MiB at the peak, {row['naive_bytes'] / 2**20:.0f} without reuse"
        )
        for column in zip(
            row["sizes"], row["kernels"], row["eager_ms"], row["capture_ms"], row["grown_bytes"], strict=True
        ):
            print("  size {:4}: {:5} kernels, eager {:8.1f} ms, capture {:8.1f} ms, pool +{:,} bytes".format(*column))
    if not args.no_save:
        note = "one capture of each size after its warm-up, CPU time; grown_bytes: what it added to the shared pool"
        settings = {"model": args.model, "threads": 1, "max_seq_len": args.max_seq_len, "what": note}
        print(f"saved {save('capture', {**settings, 'orders': found})}")


if __name__ == "__main__":
    main()
