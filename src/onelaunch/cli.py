"""The ``onelaunch`` command: ``demo`` writes text here, ``doctor`` says what this machine can do, ``check`` finds what
a replay of your step gets wrong, ``bench`` measures what an operation costs, ``trace`` reads a profile, ``grade``
judges exercises and ``exercises`` shows how far you are, ``compile`` makes the faster replay."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import onelaunch
from onelaunch.errors import ModelNotFoundError, RequestError
from onelaunch.grading import command as grading
from onelaunch.timeline import trace_command

DEFAULT_PROMPT = "A GPU is fast, but at small batch it waits for the"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; a wrong call exits with 2.

    Returns 0, 1 where what was asked cannot be done, or 130 when interrupted; ``check`` has its own, see there.
    """
    args = _parser().parse_args(argv)
    try:
        return int(args.run(args))
    except (ModelNotFoundError, RequestError, ValueError) as error:
        print(f"onelaunch {args.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader (`| head`) left
        sys.stderr.close()
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="onelaunch", description="CUDA Graphs for LLM decoding: the engine of the book."
    )
    parser.add_argument("--version", action="version", version=f"onelaunch {onelaunch.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="write text and say how fast", description="Write text as it comes.")
    demo.add_argument("prompt", nargs="?", default=DEFAULT_PROMPT, help="what to continue (default: %(default)r)")
    demo.add_argument(
        "--model", default="smollm2-135m", help="a known name, a folder or a hub name (default: %(default)s)"
    )
    demo.add_argument("--chat", action="store_true", help="put the prompt as a question to an instruction-tuned model")
    demo.add_argument(
        "--max-tokens", type=int, default=64, metavar="N", help="new tokens at most (default: %(default)s)"
    )
    demo.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 takes the likeliest (default)")
    demo.add_argument("--top-p", type=float, default=1.0, metavar="P", help="choose within this probability")
    demo.add_argument("--top-k", type=int, default=-1, metavar="K", help="choose among this many; -1 for all")
    demo.add_argument("--seed", type=int, default=None, metavar="S", help="repeat a sampled text")
    demo.add_argument("--device", default=None, help="cpu or cuda (default: a GPU where there is one)")
    demo.set_defaults(run=_demo)

    doctor = commands.add_parser("doctor", help="say what this machine can do", description="What this machine can do.")
    doctor.add_argument("--json", action="store_true", help="the same as JSON")
    doctor.set_defaults(run=_doctor)

    bench = commands.add_parser(
        "bench",
        help="measure what asking for an operation costs here",
        description="Measure what one operation costs the host on this machine, and on a GPU what launching costs. "
        "The timeline's simulator takes the JSON as its launch costs. Let nothing else run meanwhile.",
    )
    bench.add_argument(
        "--budget", type=float, default=20.0, metavar="S", help="seconds to measure for (default: %(default)s)"
    )
    bench.add_argument("--device", default=None, help="cpu leaves a GPU out (default: a GPU too where there is one)")
    bench.add_argument("--json", action="store_true", help="the same as JSON, with hardware, versions and date")
    bench.set_defaults(run=_bench)

    check = commands.add_parser(
        "check",
        help="find what a replay of your step gets wrong",
        description="Capture a step of yours, replay it beside eager on this CPU, and name the cause of every "
        "difference. FUNCTION takes no arguments and returns (prepare, step), or a dict or dataclass with these and "
        "owners, padding and rounds: the arguments of onelaunch.sanitize. Exits with 0 if nothing was found, 1 if "
        "something was, 2 if it could not be checked.",
    )
    check.add_argument("target", metavar="PATH.py:FUNCTION", help="a file and a function in it")
    check.add_argument("--rounds", type=int, default=None, metavar="N", help="replays to compare (default: 3)")
    style = check.add_mutually_exclusive_group()
    style.add_argument("--json", dest="style", action="store_const", const="json", help="the report as JSON")
    style.add_argument("--github", dest="style", action="store_const", const="github", help="as GitHub annotations")
    check.add_argument("--sarif", default=None, metavar="FILE", help="write SARIF 2.1.0 to FILE too")
    check.set_defaults(run=_check, style="text")

    grading.add_parsers(commands)
    trace_command.add_parser(commands)

    compile_ = commands.add_parser(
        "compile",
        help="compile the loop that replays tapes fastest",
        description="Compile the loop in C++ that replays tapes without Python, for this Python and this PyTorch. "
        "Takes a C++ compiler and about a minute, once.",
    )
    compile_.set_defaults(run=_compile)
    return parser


def _demo(args: argparse.Namespace) -> int:
    from onelaunch import LLM, SamplingParams

    params = SamplingParams(
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        seed=args.seed,
        max_tokens=args.max_tokens,
    )
    params.validate()  # before the model is loaded
    with LLM(args.model, device=args.device) as llm:
        prompt = args.prompt
        if args.chat:
            if llm.tokenizer is None:
                raise RequestError(f"{llm.name} brings no tokenizer, so --chat cannot be used.")
            prompt = llm.tokenizer.chat([{"role": "user", "content": prompt}])
        else:
            print(prompt, end="", flush=True)
        tokens = 0
        start = first = time.perf_counter()
        for piece in llm.stream(prompt, params):
            if piece.error is not None:
                raise RequestError(piece.error)
            print(piece.text, end="", flush=True)
            tokens += 1
            if tokens == 1:
                first = time.perf_counter()
        end = time.perf_counter()
        print()
        decode = f"{(tokens - 1) / (end - first):.1f} tokens/s" if tokens > 1 else "one token only"
        print(f"\n{llm}: first token {1e3 * (first - start):.0f} ms, then {decode}", file=sys.stderr)
    return 0


def _doctor(args: argparse.Namespace) -> int:
    from onelaunch import doctor

    return doctor.main(as_json=args.json)


def _bench(args: argparse.Namespace) -> int:
    from onelaunch.timeline import costs
    from onelaunch.timeline.timing import check_budget

    check_budget(args.budget)
    print(f"measuring for about {args.budget:g} s", file=sys.stderr)
    try:
        measured = costs.measure(args.budget, args.device)
    except RuntimeError as error:  # a GPU that makes each launch wait
        print(f"onelaunch bench: {error}", file=sys.stderr)
        return 1
    print(measured.to_json() if args.json else measured)
    return 0


def _check(args: argparse.Namespace) -> int:
    from onelaunch import check

    return check.main(args.target, args.rounds, args.style, args.sarif)


def _compile(args: argparse.Namespace) -> int:
    from onelaunch.tape import native

    try:
        print(native.build())
    except native.NativeBuildError as error:
        print(f"onelaunch compile: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
