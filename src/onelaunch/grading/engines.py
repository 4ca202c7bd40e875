"""The real engine for exercises that plug a learner's piece into it: SmolLM2, loaded once for all checks.

What it writes with the piece in it has to be what Hugging Face's model writes. Where it is not, the same is run once
more with ``sanitize=True``, and what the sanitizer finds first is the hint. This module alone of ``grading`` stays in
memory from one check to the next, so it imports the others where it needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from unittest import mock

import torch

from onelaunch import LLM, SamplingParams
from onelaunch.models.loader import LoadedModel, load_model
from onelaunch.sanitizer import Finding, FindingsError

if TYPE_CHECKING:
    from onelaunch.grading.trial import Trial

NAME = "smollm2-135m"
# The second has 14 tokens: while it is answered, it gets its second page.
PROMPTS = ("My favourite animal is", "The sun rises in the east and sets in the west, and the", "A triangle has")
# What transformers writes for them, greedily; a test holds it to that.
EXPECTED = (" a cat. What's your", " stars align perfectly in the night", " a slope of 1.")
PARAMS = SamplingParams(max_tokens=6, ignore_eos=True)
DECODE_STEPS = PARAMS.max_tokens - 1  # the first token comes from the prefill
SEQ_LEN = 64

Plugged = Callable[[], AbstractContextManager[Any]]
T = TypeVar("T")


@cache
def _loaded() -> LoadedModel:
    return load_model(NAME, device=torch.device("cpu"), dtype=torch.float32, max_seq_len=SEQ_LEN)


def llm(**options: Any) -> LLM:
    """An ``LLM`` of SmolLM2 on the CPU for up to 4 requests; the weights are loaded once. options: of ``LLM``."""

    def load(*args: Any, **kwargs: Any) -> LoadedModel:
        return _loaded()

    with mock.patch("onelaunch.engine.llm.load_model", load):
        return LLM(NAME, device="cpu", **({"max_running_req": 4, "max_seq_len_override": SEQ_LEN} | options))


def write(engine: LLM) -> tuple[str, ...]:
    """What ``engine`` writes for ``PROMPTS``: three requests in one batch. ``EXPECTED`` is what is right."""
    return tuple(result["text"] for result in engine.generate(list(PROMPTS), PARAMS))


def expect_text(trial: Trial, call: str, plugged: Plugged, look: Callable[[LLM], T], **options: Any) -> T:
    """Let an engine write that was made with the learner's pieces in it, from a graph of 4 rows. Returns what ``look``
    says of it afterwards.

    call: what is done, in the learner's terms. plugged: makes a context manager that puts the pieces in. options: of
    ``LLM``. Raises Wrong where the text is not ``EXPECTED``; the hint is then the sanitizer's first finding.
    """
    from onelaunch.grading.trial import Wrong, show

    _loaded()  # what goes wrong here is not the learner's

    def made(**more: Any) -> LLM:
        return llm(**({"cuda_graph_bs": [4]} | options | more))

    with trial.running(call, f"the texts {show(EXPECTED)}"), plugged(), made() as engine:
        got = write(engine)
        seen = look(engine)
    if got != EXPECTED:
        with trial.running(call):
            hint = _first_finding(plugged, made)
        raise Wrong(call, f"the texts {show(EXPECTED)}", show(got), hint)
    return seen


def _first_finding(plugged: Plugged, made: Callable[..., LLM]) -> str:
    """What the sanitizer says of the engine that was made so, in a line; empty where it finds nothing."""
    try:
        with plugged(), made(sanitize=True) as engine:
            write(engine)
    except FindingsError as error:
        if error.report.findings:
            return in_a_line(error.report.findings[0])
    except Exception:
        return ""  # what came out is said already; this was for the hint alone
    return ""


def with_methods(cls: str, **functions: Callable[..., Any]) -> AbstractContextManager[Any]:
    """Put functions into a class of the engine, as methods. cls: where it is, ``"onelaunch.engine.graph.GraphRunner"``.

    Whatever can be called is taken, a class with ``__call__`` too.
    """

    def method(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, *args: function(self, *args)

    methods: dict[str, Any] = {name: method(function) for name, function in functions.items()}
    return mock.patch.multiple(cls, **methods)


def replayed(engine: LLM) -> int:
    """How many decode steps of ``engine`` were replayed."""
    return engine.engine.runner.stats.replays


def in_a_line(finding: Finding) -> str:
    """A finding as a hint: its kind, its tensor, why, and what to write."""
    subject = f" {finding.tensor}" if finding.tensor else ""
    return f"The sanitizer says: {finding.kind}{subject}, {finding.why.rstrip('.')}. {finding.fix}"
