"""How fast a decode step runs eagerly, from a tape with each executor, traced, and compiled: all in turn, in one run.

    python benchmarks/replay.py              # every shape, one and two threads, and SmolLM2; saves what it found
    python benchmarks/replay.py --shape 64/8 --threads 1 --no-save
    python benchmarks/replay.py --no-inductor     # leaves torch.compile out, which takes a minute a shape

The limit beside them is the sum of the shortest times of the kernels, each taken alone: nothing that issues the
recorded kernels one by one can be faster. Inductor fuses kernels, so it can.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from common import save
from onelaunch import LLM, emulator
from onelaunch.engine.capture import EmulatedGraph
from onelaunch.engine.core import Batch
from onelaunch.tape import Executor, Tape, make_executor, native
from plain_decoder import PlainDecoder

SHAPES = ("16/1", "16/8", "64/1", "64/8", "128/1", "128/8", "1024/1", "1024/8")  # hidden/batch
LAYERS, CONTEXT, STEPS = 28, 64, 40
WAYS = ("eager", "eager_no_grad", "rerun", "python", "script", "native", "trace", "trace_frozen", "inductor")


def medians(ways: dict[str, Callable[[], Any]], steps: int) -> dict[str, float]:
    """Milliseconds of one step, by way: the median of ``steps`` steps, the ways taken in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(3):
        for run in ways.values():
            run()
    for _ in range(steps):
        for name, run in ways.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) * 1e3 for name, times in seconds.items()}


def capture(step: Callable[[], torch.Tensor]) -> tuple[Tape, torch.Tensor, float]:
    """The tape of ``step``, its output, and the seconds that the capture took."""
    step()
    graph = emulator.CUDAGraph()
    start = time.perf_counter()
    with emulator.graph(graph):
        out = step()
    seconds = time.perf_counter() - start
    assert graph.tape is not None
    return graph.tape, out, seconds


def executors(tape: Tape) -> tuple[dict[str, Executor], dict[str, float]]:
    """Each executor of ``tape``, and the seconds that making it took."""
    made, seconds = {}, {}
    for name in ("python", "script", "native"):
        start = time.perf_counter()
        made[name] = make_executor(tape, name)
        seconds[name] = time.perf_counter() - start
    return made, seconds


def limit_ms(player: Executor) -> float:
    """The sum of the kernels' shortest times in milliseconds."""
    assert isinstance(player, native.NativeExecutor)
    return 1e3 * sum(player.shortest(60))


def measure_shape(hidden: int, batch: int, threads: int, sdpa: bool, inductor: bool) -> dict[str, Any]:
    """Every way of running one decode step of ``PlainDecoder``."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = PlainDecoder(hidden, batch, LAYERS, CONTEXT, sdpa).eval().requires_grad_(False)
    ids, position = torch.arange(batch) + 3, torch.tensor([40])

    @torch.inference_mode()
    def eager() -> torch.Tensor:
        return model(ids, position)

    @torch.no_grad()
    def eager_no_grad() -> torch.Tensor:
        return model(ids, position)

    tape, out, capture_s = capture(eager)
    players, build_s = executors(tape)
    ways: dict[str, Callable[[], Any]] = {"eager": eager, "eager_no_grad": eager_no_grad}

    def again() -> None:
        eager()

    ways["rerun"] = EmulatedGraph(again).replay
    ways.update({name: player.run for name, player in players.items()})
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(model, (ids, position), check_trace=False)
        frozen = torch.jit.optimize_for_inference(torch.jit.freeze(traced))
    ways["trace"] = no_grad(lambda: traced(ids, position))
    ways["trace_frozen"] = no_grad(lambda: frozen(ids, position))
    if inductor:
        torch._dynamo.reset()
        compiled = torch.compile(model)
        ways["inductor"] = no_grad(lambda: compiled(ids, position))
        start = time.perf_counter()
        ways["inductor"]()
        build_s["inductor"] = time.perf_counter() - start
    expected = eager_no_grad().clone()
    bitwise = {}
    for name, run in ways.items():
        with torch.inference_mode():
            out.fill_(torch.nan)
        result = run()
        if name != "rerun":  # it returns nothing, and it is eager
            bitwise[name] = torch.equal(out if name in players else result, expected)
    return {
        "hidden": hidden,
        "batch": batch,
        "threads": threads,
        "attention": "sdpa" if sdpa else "explicit",
        "kernels": len(tape.kernels),
        "ms": medians(ways, STEPS),
        "limit_ms": limit_ms(players["native"]),
        "bitwise": bitwise,
        "capture_s": capture_s,
        "build_s": build_s,
    }


def no_grad(run: Callable[[], Any]) -> Callable[[], Any]:
    """``run`` without autograd. (What ``torch.jit.trace`` made cannot run in inference mode.)"""

    def without() -> Any:
        with torch.no_grad():
            return run()

    return without


def measure_smollm2(batch: int, threads: int) -> dict[str, Any]:
    """The engine's own decode step of SmolLM2 at context lengths of up to 64 tokens."""
    torch.set_num_threads(threads)
    with LLM(
        "smollm2-135m",
        device="cpu",
        graph="tape",
        cuda_graph_bs=[batch],
        max_running_req=batch,
        max_seq_len_override=64,
    ) as llm:
        runner, context = llm.engine.runner, llm.engine.runner.context
        graph = runner.graph_map[batch]
        assert isinstance(graph, emulator.CUDAGraph)
        assert graph.tape is not None
        fixed = Batch([runner.dummy_req] * batch, "decode")
        context.attn_backend.prepare_for_capture(fixed)
        runner.buffer.set_batch(fixed)

        def eager() -> None:
            with torch.inference_mode(), context.forward_batch(fixed):
                logits = runner.model(fixed.input_ids, fixed.positions, context)
                runner.buffer.logits[:batch].copy_(logits)

        def step() -> torch.Tensor:
            eager()
            return runner.buffer.logits

        _, _, capture_s = capture(step)
        players, build_s = executors(graph.tape)
        ways = {"eager": eager, "rerun": EmulatedGraph(eager).replay}
        ways.update({name: player.run for name, player in players.items()})
        results = {}
        for name, run in ways.items():
            runner.buffer.logits.fill_(torch.nan)
            run()
            results[name] = runner.buffer.logits[:batch].clone()
        return {
            "batch": batch,
            "threads": threads,
            "kernels": len(graph.tape.kernels),
            "ms": medians(ways, 30),
            "limit_ms": limit_ms(players["native"]),
            "bitwise": {name: torch.equal(result, results["eager"]) for name, result in results.items()},
            "capture_s": capture_s,
            "build_s": build_s,
        }


def show(title: str, row: dict[str, Any]) -> None:
    """One line: how many times as fast as eager each way is."""
    eager = row["ms"]["eager"]
    ratios = "  ".join(f"{name} {eager / row['ms'][name]:.2f}" for name in WAYS[1:] if name in row["ms"])
    print(f"{title:28} {row['kernels']} kernels, eager {eager:.1f} ms; times as fast: {ratios}", end="")
    best = min(row["ms"][name] for name in ("python", "script", "native"))
    print(f"; best tape / limit {best / row['limit_ms']:.2f}; capture {row['capture_s']:.2f} s", flush=True)
    wrong = [name for name, same in row["bitwise"].items() if not same]
    if wrong:
        print(f"{'':28} not bitwise equal to eager: {', '.join(wrong)}")


def main() -> None:
    """Measure what is asked for, print ratios, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", action="append", metavar="HIDDEN/BATCH", help="one of the shapes; may be repeated")
    parser.add_argument("--threads", type=int, action="append", metavar="N", help="may be repeated; default 1 and 2")
    parser.add_argument("--no-inductor", action="store_true", help="leave torch.compile out")
    parser.add_argument("--no-smollm2", action="store_true", help="leave SmolLM2 out")
    parser.add_argument("--no-save", action="store_true", help="do not touch the saved measurement")
    args = parser.parse_args()
    native.build()
    shapes, smollm2 = [], []
    for threads in args.threads or (1, 2):
        for shape in args.shape or SHAPES:
            hidden, batch = (int(part) for part in shape.split("/"))
            row = measure_shape(hidden, batch, threads, sdpa=False, inductor=not args.no_inductor)
            show(f"{shape}, {threads} threads", row)
            shapes.append(row)
        if not args.shape or "64/8" in args.shape:
            shapes.append(measure_shape(64, 8, threads, sdpa=True, inductor=False))
            show(f"64/8 with SDPA, {threads} threads", shapes[-1])
        for batch in () if args.no_smollm2 else (1, 8):
            smollm2.append(measure_smollm2(batch, threads))
            show(f"SmolLM2/{batch}, {threads} threads", smollm2[-1])
    if not args.no_save:
        print(
            save("replay", {"layers": LAYERS, "context": CONTEXT, "steps": STEPS, "shapes": shapes, "smollm2": smollm2})
        )


if __name__ == "__main__":
    main()
