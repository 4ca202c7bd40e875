"""The run that the book is about, on SmolLM2: three requests decoded as four, from graphs, right and then wrong.

    python benchmarks/graphs.py             # prints the run and the times, saves them
    python benchmarks/graphs.py --no-save

Texts are compared with the engine without graphs and with Hugging Face; then ``copy_from`` forgets ``positions``. The
times are those of a decode step of the whole engine (prepare, pad, copy, replay, sample), the engines taken in turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack
from typing import Any

import torch
import transformers

from common import save
from onelaunch import LLM, SamplingParams
from onelaunch.engine.core import Batch
from onelaunch.models.loader import find_folder

PROMPTS = ["My favourite animal is", "The sun rises in the", "A triangle has"]
SIX = SamplingParams(max_tokens=6)
ENGINES: dict[str, dict[str, Any]] = {
    "off": {},
    "rerun": {"graph": "rerun", "cuda_graph_max_bs": 4},
    "tape": {"graph": "tape", "cuda_graph_max_bs": 4},
}


def huggingface(prompts: list[str]) -> list[list[int]]:
    """The tokens that transformers' ``generate`` gives each prompt by itself."""
    folder = find_folder("smollm2-135m")
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = []
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False)
        tokens.append(out[0, ids.shape[1] :].tolist())
    return tokens


def tokens_of(llm: LLM) -> list[list[int]]:
    """What ``llm`` generates for the three prompts."""
    return [list(answer["token_ids"]) for answer in llm.generate(PROMPTS, SIX)]


def step_seconds(llm: LLM, steps: int) -> list[float]:
    """Seconds of each decode step of the three prompts."""
    for prompt in PROMPTS:
        llm.submit(prompt, SamplingParams(max_tokens=steps, ignore_eos=True))
    llm.step()  # the prefill
    times: list[float] = []
    while True:
        start = time.perf_counter()
        if llm.step() is None:
            return times
        times.append(time.perf_counter() - start)


def forgetful_run(llm: LLM) -> list[list[int]]:
    """The same prompts with a ``copy_from`` that leaves ``positions`` as they were."""
    buffer = llm.engine.runner.buffer

    def all_but_positions(batch: Batch) -> None:
        buffer.input_ids[: batch.padded_size].copy_(batch.input_ids)
        buffer.out_loc[: batch.padded_size].copy_(batch.out_loc)

    right = buffer.copy_from
    setattr(buffer, "copy_from", all_but_positions)  # noqa: B010 - a method is replaced on purpose
    try:
        return tokens_of(llm)
    finally:
        setattr(buffer, "copy_from", right)  # noqa: B010


def main() -> None:
    """Make the run, print it, save its times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=24, help="decode steps of a timed run (default: %(default)s)")
    parser.add_argument("--no-save", action="store_true", help="do not touch the saved measurement")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    expected = huggingface(PROMPTS)
    with ExitStack() as stack:
        llms = {
            name: stack.enter_context(
                LLM("smollm2-135m", device="cpu", max_running_req=4, max_seq_len_override=256, **options)
            )
            for name, options in ENGINES.items()
        }
        runner = llms["tape"].engine.runner
        found = {name: tokens_of(llm) for name, llm in llms.items()}
        sizes, steps = runner.graph_bs_list, [[*key, times] for key, times in runner.stats.steps.items()]
        print("recorded sizes:", sizes)
        print("decode steps (requests, rows, times):", steps)
        equal = {name: tokens == expected for name, tokens in found.items()}
        print("equal to Hugging Face:", equal)
        wrong = forgetful_run(llms["tape"])
        first_wrong = [
            next((n for n, (a, b) in enumerate(zip(row, right, strict=True), start=1) if a != b), None)
            for row, right in zip(wrong, expected, strict=True)
        ]
        print("without positions, the first wrong token of each request:", first_wrong)
        seconds: dict[str, list[float]] = {name: [] for name in llms}
        for turn in range(4):
            for name, llm in llms.items():
                times = step_seconds(llm, args.steps)
                if turn:  # the first is a warm-up, in which the tape finds its fastest executor
                    seconds[name] += times
        ms = {name: 1e3 * statistics.median(times) for name, times in seconds.items()}
        for name in ("rerun", "tape"):
            print(f"{name}: {ms['off'] / ms[name]:.2f} times as fast as without graphs")
        executor = getattr(runner.graph_map[4], "executor", None)
        print("the tape was played by:", executor)
    if not args.no_save:
        figures = {
            "what": "median decode step of the engine, three prompts run as four, 256 tokens of context at most",
            "threads": args.threads,
            "sizes": sizes,
            "steps": steps,
            "equal_to_huggingface": equal,
            "first_wrong_token_without_positions": first_wrong,
            "executor": executor,
            "ms": ms,
        }
        print(save("graphs", figures))


if __name__ == "__main__":
    main()
