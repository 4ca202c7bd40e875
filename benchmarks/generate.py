"""How long a decode step takes: this engine and Hugging Face's ``generate``, in turn, on the same weights, threads and
prompts, beside the linear layers alone, which no engine that runs them one by one can beat.

    python benchmarks/generate.py    # batch 1, 4 and 8, one and two threads; saves what it found
    python benchmarks/generate.py --batch 1 --threads 1 --no-save
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import nn

from common import save
from onelaunch import LLM, SamplingParams
from onelaunch.models.layers import MergedLinear
from onelaunch.models.loader import find_folder

TEXT = (
    "One decode step of a language model launches hundreds of kernels. At small batch each of them computes for a few "
    "microseconds, and the host takes a few microseconds to launch one, so the device waits for the host. A graph "
    "records the step once and replays it with a single launch. The price is that every address is fixed, "
)


class StepClock(transformers.StoppingCriteria):
    """Notes the time at the end of every step that ``generate`` makes, and never stops it."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        self.times.append(time.perf_counter())
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)


def run_onelaunch(llm: LLM, prompts: list[list[int]], steps: int) -> tuple[list[float], float, list[list[int]]]:
    """Seconds of every decode step, seconds in all, and the tokens."""
    params = SamplingParams(max_tokens=steps, ignore_eos=True)
    start = time.perf_counter()
    handles = [llm.submit(prompt, params) for prompt in prompts]
    times = []
    while llm.step() is not None:
        times.append(time.perf_counter())
    decode = [after - before for before, after in itertools.pairwise(times)]
    return decode, times[-1] - start, [handle.token_ids for handle in handles]


def run_huggingface(model: Any, prompts: list[list[int]], steps: int) -> tuple[list[float], float, list[list[int]]]:
    """The same of ``generate``; all prompts have one length, so it needs no padding."""
    ids = torch.tensor(prompts)
    clock = StepClock()
    start = time.perf_counter()
    with torch.inference_mode():
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            min_new_tokens=steps,
            max_new_tokens=steps,
            do_sample=False,
            stopping_criteria=transformers.StoppingCriteriaList([clock]),
        )
    decode = [after - before for before, after in zip(clock.times, clock.times[1:], strict=False)]
    return decode, time.perf_counter() - start, out[:, ids.shape[1] :].tolist()


def linear_floor(model: nn.Module, kind: type[nn.Module], rows: int, repeats: int = 20) -> float:
    """Seconds of all linear layers of ``model`` one after the other on ``rows`` rows, nothing between them (median)."""
    layers = [module for module in model.modules() if isinstance(module, kind)]
    inputs = {width: torch.randn(rows, width) for width in {_in_features(layer) for layer in layers}}

    def once() -> float:
        start = time.perf_counter()
        for layer in layers:
            layer(inputs[_in_features(layer)])
        return time.perf_counter() - start

    with torch.inference_mode():
        once()
        return statistics.median(once() for _ in range(repeats))


def _in_features(layer: nn.Module) -> int:
    if isinstance(layer, MergedLinear):
        return layer.weight.shape[0]
    assert isinstance(layer, nn.Linear)
    return layer.in_features


def in_turn(first: Callable[[], Any], second: Callable[[], Any], repeats: int) -> tuple[list[Any], list[Any]]:
    """Run the two alternately, so that a slow moment of the machine meets both."""
    first(), second()  # warm-up
    pairs = [(first(), second()) for _ in range(repeats)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def measure(llm: LLM, reference: Any, batch: int, threads: int, steps: int, repeats: int) -> dict[str, Any]:
    """One row of the table: this batch on so many threads."""
    torch.set_num_threads(threads)
    assert llm.tokenizer is not None
    ids = llm.tokenizer.encode(TEXT)
    prompts = [ids[row : row + 48] for row in range(batch)]
    ours, theirs = in_turn(
        lambda: run_onelaunch(llm, prompts, steps), lambda: run_huggingface(reference, prompts, steps), repeats
    )
    if ours[0][2] != theirs[0][2]:
        raise SystemExit("the two wrote different tokens: these times would compare nothing.")

    def step_ms(runs: list[Any]) -> float:
        return 1e3 * statistics.median(step for run in runs for step in run[0])

    def tokens_per_s(runs: list[Any]) -> float:
        return statistics.median(batch * steps / run[1] for run in runs)

    return {
        "threads": threads,
        "batch": batch,
        "onelaunch_ms": round(step_ms(ours), 2),
        "huggingface_ms": round(step_ms(theirs), 2),
        "linear_floor_ms": round(1e3 * linear_floor(llm.engine.model, MergedLinear, batch), 2),
        "huggingface_linear_floor_ms": round(1e3 * linear_floor(reference, nn.Linear, batch), 2),
        "onelaunch_tokens_per_s": round(tokens_per_s(ours), 1),
        "huggingface_tokens_per_s": round(tokens_per_s(theirs), 1),
    }


def main() -> None:
    """Measure every combination that was asked for, print the table, save it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=24, help="new tokens of a run (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each engine (default: %(default)s)")
    parser.add_argument("--no-save", action="store_true", help="print only")
    args = parser.parse_args()

    transformers.utils.logging.set_verbosity_error()
    reference: Any = transformers.AutoModelForCausalLM.from_pretrained(find_folder(args.model), dtype=torch.float32)
    rows = []
    print("threads batch | onelaunch  Hugging Face  ratio | linear layers: ours  theirs | tokens/s: ours  theirs")
    with LLM(args.model, device="cpu") as llm:
        for threads in args.threads:
            for batch in args.batch:
                row = measure(llm, reference, batch, threads, args.steps, args.repeats)
                rows.append(row)
                print(
                    f"{threads:7} {batch:5} | {row['onelaunch_ms']:6.1f} ms {row['huggingface_ms']:10.1f} ms "
                    f"{row['huggingface_ms'] / row['onelaunch_ms']:6.2f} | "
                    f"{row['linear_floor_ms']:16.1f} {row['huggingface_linear_floor_ms']:8.1f} ms | "
                    f"{row['onelaunch_tokens_per_s']:14.1f} {row['huggingface_tokens_per_s']:7.1f}",
                    flush=True,
                )
    if not args.no_save:
        note = "median decode step, 48 prompt tokens, greedy, float32, both engines in turn"
        print(f"saved {save('generate', {'model': args.model, 'what': note, 'rows': rows})}")


if __name__ == "__main__":
    main()
