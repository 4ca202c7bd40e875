"""Running a learner's code under questions: on copies, with a limit on time, and with what it raises told apart from
what a check raises.

A check says what is right before it asks, compares values and never what was printed.
"""

from __future__ import annotations

import copy
import io
import math
import numbers
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

LONGEST = 300  # characters of a value that are shown
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Wrong(Exception):
    """An answer that is not right, said as: this call should have given this and gave that."""

    def __init__(self, call: str = "", expected: str = "", got: str = "", hint: str = "") -> None:
        super().__init__(f"{call}: expected {expected}, got {got}")
        self.call, self.expected, self.got, self.hint = call, expected, got, hint


class NotStarted(Exception):
    """An answer that is still the stub."""


class TooLong(BaseException):
    """Raised into code that runs too long. No Exception, so that a learner's ``except Exception`` lets it pass."""


class Trial:
    """Asks the answers in a namespace. rng: the source of random questions, seeded."""

    def __init__(self, namespace: Mapping[str, Any], rng: random.Random) -> None:
        self.namespace, self.rng = namespace, rng
        self.inside = ""  # the call that is running, while the learner's code runs

    def expect(
        self, name: str, *args: Any, expected: Any, hint: str = "", within: float = 0.0, call: str = "", **kwargs: Any
    ) -> Any:
        """Call the answer ``name`` with copies of the arguments; it must return ``expected``. Returns what it gave.

        within: how far off a float may be, as a share of it. hint: for this question; the check's first hint if empty.
        call: how the question is written; its arguments if empty.
        """
        call = call or written(name, args, kwargs)
        got = self.call(name, *args, expected=show(expected), call=call, **kwargs)
        self.equal(got, expected, call=call, hint=hint, within=within)
        return got

    def call(self, name: str, *args: Any, expected: str = "a value", call: str = "", **kwargs: Any) -> Any:
        """What the answer ``name`` returns for copies of these arguments. Raises Wrong for what it raises."""
        function = self.answer(name)
        if not callable(function):
            raise Wrong(name, "a function", show(function), f"Your cell must define {name} with def.")
        copies, named = copy.deepcopy(args), copy.deepcopy(kwargs)
        with self.running(call or written(name, args, kwargs), expected):
            return function(*copies, **named)

    def keeps(self, name: str, *args: Any, expected: str, hint: str = "") -> None:
        """Call the answer ``name`` with the arguments themselves; they must be as before, in the same order.

        expected: what is kept, in words.
        """
        call, before = written(name, args, {}), [repr(value) for value in args]
        with self.running(call):
            self.answer(name)(*args)
            changed = [value for value, was in zip(args, before, strict=True) if repr(value) != was]
        if changed:
            raise Wrong(call, expected, show(changed[0]), hint)

    def raises(self, name: str, *args: Any, error: type[Exception] = ValueError, hint: str = "", **kwargs: Any) -> None:
        """Call the answer ``name`` with copies of the arguments; it must raise ``error``."""
        call, function = written(name, args, kwargs), self.answer(name)
        copies, named = copy.deepcopy(args), copy.deepcopy(kwargs)
        with self.running(call, f"{error.__name__} raised"):
            try:
                got = function(*copies, **named)
            except NotImplementedError:
                raise
            except error:
                return
        raise Wrong(call, f"{error.__name__} raised", show(got), hint)

    def answer(self, name: str) -> Any:
        """What the learner's cell calls ``name``. Raises Wrong where there is nothing of that name."""
        if name not in self.namespace:
            hint = f"Run the cell that defines {name}, and look whether it raised an error."
            raise Wrong(name, f"a definition of {name}", "none", hint)
        return self.namespace[name]

    def equal(self, got: Any, expected: Any, *, call: str, hint: str = "", within: float = 0.0) -> None:
        """Raise Wrong unless ``got`` has the type and value of ``expected``."""
        if not same(got, expected, within):
            shown = show(got)
            if shown == show(expected):
                shown += f" of type {type(got).__name__}"
            raise Wrong(call, show(expected), shown, hint)

    @contextmanager
    def running(self, call: str, expected: str = "no error") -> Iterator[None]:
        """What is raised in this block is the learner's."""
        self.inside = call
        try:
            yield
        except (Wrong, NotStarted, TooLong, KeyboardInterrupt):
            raise
        except NotImplementedError as error:
            raise NotStarted from error
        except MemoryError as error:
            raise Wrong(call, expected, "out of memory", "Does something grow without an end?") from error
        except BaseException as error:  # SystemExit too: exit() in an answer ends no grading
            raise Wrong(call, expected, _raised(error), _hint_for(error)) from error
        self.inside = ""  # stays set after an error: the verdict names the call


@contextmanager
def silence() -> Iterator[None]:
    """Drop what is printed in this block, however much that is."""
    with redirect_stdout(_Nowhere()), redirect_stderr(_Nowhere()):
        yield


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


def same(got: Any, expected: Any, within: float = 0.0) -> bool:
    """Whether two values are of one kind and equal. Lists and tuples are one kind, bool and int are not; tensors have
    to agree in shape and dtype. Never raises.

    within: how far apart floats may be, as a share of the expected one; for tensors in absolute terms too.
    """
    try:
        return _same(got, expected, within)
    except Exception:  # a value whose comparison raises is not the value
        return False


def _same(got: Any, expected: Any, within: float) -> bool:
    if expected is None or isinstance(expected, bool):
        return got is expected
    if isinstance(expected, numbers.Integral):
        return isinstance(got, numbers.Integral) and not isinstance(got, bool) and int(got) == int(expected)
    if isinstance(expected, numbers.Real):
        if not isinstance(got, numbers.Real) or isinstance(got, bool):
            return False
        given, right = float(got), float(expected)
        return given == right or (math.isnan(given) and math.isnan(right)) or abs(given - right) <= within * abs(right)
    if isinstance(expected, str):
        return isinstance(got, str) and got == expected
    if isinstance(expected, Mapping):
        return isinstance(got, Mapping) and set(got) == set(expected) and all(
            _same(got[key], value, within) for key, value in expected.items()
        )  # fmt: skip
    if isinstance(expected, Set):
        return isinstance(got, Set) and set(got) == set(expected)
    if isinstance(expected, Sequence):
        return isinstance(got, (list, tuple)) and len(got) == len(expected) and all(
            _same(one, other, within) for one, other in zip(got, expected, strict=True)
        )  # fmt: skip
    if _is_tensor(expected):
        return _same_tensor(got, expected, within)
    return type(got) is type(expected) and bool(got == expected)


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "untyped_storage")


def _same_tensor(got: Any, expected: Any, within: float) -> bool:
    import torch  # there, since there is a tensor

    if not isinstance(got, torch.Tensor) or got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    if within == 0.0 and not expected.is_floating_point():
        return torch.equal(got, expected)
    return torch.allclose(got, expected, rtol=within, atol=within, equal_nan=True)


def show(value: Any) -> str:
    """A value as it is shown to a learner, shortened. Never raises."""
    try:
        text = f"{value.tolist()} of {value.dtype}, shape {list(value.shape)}" if _is_tensor(value) else repr(value)
    except Exception as error:
        text = f"a {type(value).__name__} whose repr raises {type(error).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def written(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """A call as one would write it."""
    return f"{name}({', '.join([*map(show, args), *(f'{key}={show(value)}' for key, value in kwargs.items())])})"


def _raised(error: BaseException) -> str:
    """An error and where in the learner's cell it was raised."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_library(frame.filename)]
    place = f" (line {own[-1].lineno} of its cell, in {own[-1].name})" if own else ""
    return f"{text[:LONGEST]}{place}"


def _is_library(file: str) -> bool:
    return file.startswith((_HOME, sys.base_prefix, sys.prefix, "<frozen"))


def _hint_for(error: BaseException) -> str:
    if isinstance(error, NameError):
        return "Only the cells marked as answers are graded: put your imports and helpers into them."
    if isinstance(error, SystemExit):
        return "An answer returns its result; it does not end Python."
    if type(error).__name__ == "StdinNotImplementedError":
        return "An answer gets all it needs as arguments; nobody is there to type."
    return ""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooLong in this block after ``seconds``, where the machine can: in the main thread, not on Windows."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: object) -> None:
        raise TooLong

    try:
        before = signal.signal(signal.SIGALRM, stop)
    except (ValueError, OSError, AttributeError):  # a browser has the names and no signals
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)  # and again, for code that catches it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
