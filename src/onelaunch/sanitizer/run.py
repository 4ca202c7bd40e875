"""``sanitize``: capture a step, replay it beside eager, and name the cause of every difference."""

from __future__ import annotations

import functools
import gc
import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any

import torch

from onelaunch.sanitizer import causes
from onelaunch.sanitizer.bindings import Bindings
from onelaunch.sanitizer.differences import compare, same_kernels
from onelaunch.sanitizer.evidence import Evidence
from onelaunch.sanitizer.overwrites import Overwrites
from onelaunch.sanitizer.owners import Names, Root, names, roots
from onelaunch.sanitizer.playback import Playback
from onelaunch.sanitizer.recording import CountWork, Recording, capture, run_eagerly
from onelaunch.sanitizer.report import Finding, Report, counted
from onelaunch.sanitizer.rounds import Round
from onelaunch.streams import Capture, Stream, stream
from onelaunch.tape import CaptureError, Pool
from onelaunch.tape.source import Source

_GROWTHS = 8  # recordings after which memory that still grows is said to grow for good
_OF_THE_HOST = ("host-sync", "host-data", "dynamic-shape")


class SanitizerError(RuntimeError):
    """The step could not be checked: it does what this emulation cannot follow."""


def sanitize(
    prepare: Callable[[int], object],
    step: Callable[[], Any],
    rounds: int = 3,
    owners: Any = (),
    padding: Callable[[int], Any] | None = None,
) -> Report:
    """Find out whether ``step``, recorded once and replayed, computes what it computes eagerly, and if not, why.

    prepare: the host code before step i; it may be called again for the same i. Where it returns False there is no
    graph for this step, which then runs eagerly; that is a fault (``silent-eager``) unless prepare issues a warning.
    step: what is captured; it returns a tensor or any nest of them, on the CPU. The order is ``prepare(0)``, one
    warm-up ``step()``, the capture, then for i = 1 to ``rounds`` ``prepare(i)`` and a replay. Beside each replay the
    step runs eagerly from the same state; what that does to memory, to Python objects that can be reached from owners
    and functions, and to random numbers is taken back.

    owners: whose names to use: modules, dataclasses, namespaces, dicts, nested as you like; one, or several in a tuple.
    Without them names come from the variables that the two functions use. A ``torch.Generator`` among them counts as
    registered with the graph. padding: returns the views that hold padding in round i. They are filled with NaN,
    extreme values and other valid indices; nothing may change but them and the rows of results that belong to them.

    Raises TypeError and ValueError for arguments that mean nothing, SanitizerError where the step cannot be followed,
    and whatever the functions themselves raise.
    """
    _check(prepare, step, rounds, padding)
    start = roots(owners, step, prepare)
    generators = [root.value for root in start if isinstance(root.value, torch.Generator)]
    overwrites = Overwrites(start)
    try:
        with overwrites.listening():
            prepare(0)
        with CountWork() as work, stream(Stream()):
            step()
        if work.elsewhere is not None:
            raise SanitizerError(
                f"the step cannot be checked: it works on tensors of device {str(work.elsewhere)!r}, and what is "
                "compared here are numbers in the CPU's memory. Make the model and its inputs on device='cpu'."
            )
        before = names(start)
        recorded = capture(step, generators)
        playback = Playback(recorded.tape)
        overwrites.captured(recorded)
        findings = [causes.of_refusal(refusal, before) for refusal in recorded.refused]
        findings += _not_captured(step, recorded, work.kernels)
        lazy, handled = _only_once(step, recorded, start, generators)
        findings += lazy
        on_host = any(finding.kind in _OF_THE_HOST for finding in findings)
        compared = 0
        for number in range(1, rounds + 1):
            with overwrites.listening(), _Warnings() as said:
                without_graph = prepare(number) is False
            overwrites.keep()
            if without_graph:
                step()
                if not said.any:
                    findings.append(_eager_round(prepare, number))
                continue
            compared += 1
            turn = Round(number, step, recorded, playback, before, start, generators, handled)
            overwrites.step(recorded, turn.names)
            views = padding(number) if padding is not None else ()
            found = turn.check(views)
            if recorded.elsewhere:  # what the graph lacks is no decision of the host
                found = [f for f in found if f.kind != "frozen-branch"]
            if on_host:  # what follows from a value that the host should not have read is no second fault
                found = [f for f in found if f.tensor is not None and f.kind not in ("frozen-value", "frozen-branch")]
            findings += found
            overwrites.replayed()
    except CaptureError as error:
        raise SanitizerError(f"the step cannot be checked: {error}") from error
    return Report(causes.merged([*findings, *overwrites.findings]), compared, len(recorded.tape.kernels))


class _Warnings:
    """Notes whether a warning was issued within it, and lets all of them through."""

    any = False

    def __enter__(self) -> _Warnings:
        self._catcher = warnings.catch_warnings(record=True)
        self._caught = self._catcher.__enter__()
        warnings.simplefilter("always")
        return self

    def __exit__(self, *error: Any) -> None:
        self._catcher.__exit__(*error)
        for warning in self._caught or ():
            self.any = True
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _eager_round(prepare: object, number: int) -> Finding:
    why = (
        f"prepare({number}) said that there is no graph for this step, so it ran eagerly, right and slowly, and "
        "nothing told of it"
    )
    fix = "Record a size that holds such a batch, or let it be known: a warning, a line in the log, a counter."
    return Finding("silent-eager", None, source_of(prepare), why, fix)


def _check(prepare: object, step: object, rounds: object, padding: object) -> None:
    for name, value in (
        ("prepare", prepare),
        ("step", step),
        *((("padding", padding),) if padding is not None else ()),
    ):
        if not callable(value):
            raise TypeError(f"{name} must be a function; found {value!r}.")
        _check_call(name, value)
    if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1:
        raise ValueError(f"rounds must be a number of replays, at least 1; found {rounds!r}.")
    if Capture.current is not None:
        raise RuntimeError("sanitize was called during a capture: it makes a capture itself. Call it outside.")


def _check_call(name: str, function: Callable[..., Any]) -> None:
    lazy = {"a generator": inspect.isgeneratorfunction, "a coroutine": inspect.iscoroutinefunction}
    if name != "padding":
        for what, is_such in {**lazy, "an asynchronous generator": inspect.isasyncgenfunction}.items():
            if is_such(function):
                raise TypeError(f"{name}() returns {what}: to call it runs nothing of it. Give a plain function.")
    arguments, how = ((), "without arguments") if name == "step" else ((0,), "with the number of the round")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # none to be had
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise TypeError(f"{name} is called {how}; found {name}{signature}: {error}.") from error


def _not_captured(step: object, recorded: Recording, kernels: int) -> list[Finding]:
    """Work that the step does and the graph does not hold."""
    if not kernels and not recorded.tape.kernels and not recorded.refused:
        raise SanitizerError(
            "the step cannot be checked: it runs no operation of PyTorch that computes something, so there is nothing "
            "to capture. Is the work in prepare, in numpy, or in a function that was not called?"
        )
    if recorded.elsewhere:
        op, where = recorded.elsewhere[0]
        many = len(recorded.elsewhere)
        why = (
            f"{counted(many, 'operation')} of the step ({op} first) ran on a stream that takes no part in the "
            "capture: at once, eagerly, and no replay repeats them"
        )
        fix = (
            "Let that stream wait for the capturing one (side.wait_stream(current)) before it works, and join it after."
        )
        return [Finding("silent-eager", None, where, why, fix)]
    if kernels and not recorded.tape.kernels:
        why = (
            f"the capture is empty, and the step ran {counted(kernels, 'kernel')} before: replays do nothing, silently"
        )
        fix = "Call the work itself in the step, not a result that was computed before."
        return [Finding("silent-eager", None, source_of(step), why, fix)]
    return []


def source_of(function: Any) -> Source:
    """Where a function is defined."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return Source(code.co_filename, code.co_firstlineno, code.co_name) if code else Source("<the step>", 0, "")


def _only_once(
    step: Callable[[], Any], recorded: Recording, start: list[Root], generators: list[torch.Generator]
) -> tuple[list[Finding], set[tuple[object, ...]]]:
    """Work of the captured run that no later run does, and memory that piles up run after run.

    Returns the findings and what identifies the differences between recordings that they explain.
    """
    bindings, pool = Bindings(start), Pool()
    runs: list[Recording] = []
    used: list[int] = []
    found: list[Finding] = []
    handled: set[tuple[object, ...]] = set()

    def run() -> None:
        runs.append(run_eagerly(step, generators, pool))
        pool.collect()
        used.append(pool.used_bytes)

    try:
        run()
        run()
        while used[-1] > used[-2] and len(runs) < _GROWTHS:
            run()
        now = names(start)
        if used[-1] > used[-2]:
            gc.collect()  # some of it may only wait for that
            pool.collect()
        if used[-1] > used[-2] and pool.used_bytes > used[-2]:
            found.append(_growth(runs[-1], used, now))
        evidence = Evidence(recorded, runs[0], Playback(runs[0].tape), now, now, 0, True)
        differences = [d for d in compare(recorded, runs[0]) if d.what in ("kernels", "made-once")]
        if any(d.what == "kernels" for d in differences):
            again = capture(step, generators)
            if not same_kernels(runs[0].tape, runs[1].tape) or same_kernels(again.tape, recorded.tape):
                differences = [d for d in differences if d.what == "made-once"]
            again.forget()
        for d in differences:
            if d.what == "made-once":
                finding = causes.of_difference(d, evidence)
                found += [finding] if finding is not None else []
            elif d.kernel is not None:
                found.append(causes.lazy(d, evidence))
            handled.add(d.key)
    finally:
        for made in runs:
            if hasattr(made, "tape"):
                made.forget()
        bindings.restore()
    return found, handled


def _growth(run: Recording, used: list[int], now: Names) -> Finding:
    tape = run.tape
    alive = [buffer for buffer in tape.buffers if buffer.kind == "output"]
    buffer = max(alive, key=lambda buffer: buffer.nbytes, default=None)
    place = now.of(buffer.address, buffer.address + buffer.nbytes) if buffer is not None else None
    made = [k for k in tape.kernels if buffer is not None and any(ref.buffer == buffer.index for ref in k.writes)]
    where = made[0].where if made else tape.kernels[-1].where
    name = re.sub(r"(\.\d+)+$", "", place.path) if place is not None else ""  # the list, not its last item
    why = (
        f"each recording of the step keeps {used[-1] - used[-2]:,} bytes of the pool more "
        f"({', '.join(f'{n:,}' for n in used[:4])}, ...): {name or 'something'} holds on to what the step makes"
    )
    fix = (
        "Make it once, before the capture, and write into it; results that you keep are cloned after a replay, outside "
        "of the step."
    )
    return Finding("pool-growth", name or None, where, why, fix)
