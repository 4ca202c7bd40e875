"""How an answer is asked: on copies, compared by value and type, and whose fault an error is."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from onelaunch.grading.base import FAIL, NOT_STARTED, OUR_FAULT, PASS, Exercise, Verdict
from onelaunch.grading.trial import Trial, same


def judged(check: Any, **answers: Any) -> Verdict:
    exercise = Exercise("ex00", "A test", seconds=0.3)
    exercise.check("it holds", hints=("a", "b", "c"))(check)
    return exercise.judge(1, answers)


def asks(trial: Trial) -> None:
    trial.expect("double", 3, expected=6)


class Odd:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("got", "expected", "equal"),
    [
        (1, 1, True), (True, 1, False), (1, True, False), (1.0, 1, False), (1, 1.0, True), ("1", 1, False),
        (None, 0, False), (0, None, False), ([1, 2], (1, 2), True), ([1], [1, 2], False), ("ab", ["a", "b"], False),
        ({1: [2]}, {1: (2,)}, True), ({1: 2}, {1: 3}, False), ({1, 2}, {2, 1}, True),
        (float("nan"), float("nan"), True),
        (Odd(), 3, False), ([Odd()], [3], False),
        (torch.tensor([1, 2]), torch.tensor([1, 2]), True),
        (torch.tensor([1, 2], dtype=torch.int32), torch.tensor([1, 2]), False),
        (torch.tensor([[1, 2]]), torch.tensor([1, 2]), False), ([1, 2], torch.tensor([1, 2]), False),
    ],
)  # fmt: skip
def test_values_are_compared_by_kind_and_value(got: Any, expected: Any, equal: bool) -> None:
    assert same(got, expected) is equal


def test_floats_may_be_off_by_a_share() -> None:
    assert same(100.9, 100.0, within=0.01)
    assert not same(101.1, 100.0, within=0.01)


def test_a_right_answer_passes() -> None:
    assert judged(asks, double=lambda x: 2 * x).line == "PASS ex00.1 it holds"


def test_a_wrong_answer_gets_expected_got_and_a_hint() -> None:
    verdict = judged(asks, double=lambda x: x)
    assert (verdict.status, verdict.call, verdict.expected, verdict.got, verdict.hint) == (
        FAIL, "double(3)", "6", "3", "a",
    )  # fmt: skip


def test_a_value_of_another_kind_that_looks_the_same_is_told_apart() -> None:
    class Six(int):
        def __repr__(self) -> str:
            return "'six'"

    verdict = judged(lambda trial: trial.expect("name", expected="six"), name=lambda: Six(6))
    assert verdict.got == "'six' of type Six"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda x: 1 / 0, "ZeroDivisionError: division by zero (line"),
        (lambda x: exit(), "SystemExit"),
        (lambda x: missing, "NameError"),  # type: ignore[name-defined]  # noqa: F821
        (lambda: 1, "TypeError"),
        (Odd, "TypeError"),
        (lambda x: Odd(), "a Odd whose repr raises RuntimeError"),
        (7, "7"),
    ],
)
def test_what_an_answer_raises_or_returns_never_is_our_fault(answer: Any, said: str) -> None:
    verdict = judged(asks, double=answer)
    assert verdict.status == FAIL
    assert said in verdict.got


def test_an_answer_that_is_missing_says_so() -> None:
    assert judged(asks).expected == "a definition of double"


def test_a_stub_is_not_started() -> None:
    def double(x: int) -> int:
        raise NotImplementedError

    assert judged(asks, double=double).status == NOT_STARTED


def test_what_a_check_raises_is_our_fault() -> None:
    verdict = judged(lambda trial: 1 / 0)
    assert verdict.status == OUR_FAULT
    assert "ZeroDivisionError" in verdict.got


def test_an_answer_gets_copies() -> None:
    given = [[1], [2]]

    def spoils(rows: list[list[int]]) -> int:
        rows[0].clear()
        return 0

    assert judged(lambda trial: trial.expect("spoils", given, expected=0), spoils=spoils).status == PASS
    assert given == [[1], [2]]


def test_an_answer_that_takes_too_long_is_stopped() -> None:
    def never(x: int) -> int:
        while True:
            try:
                while True:
                    pass
            except Exception:
                pass

    verdict = judged(asks, double=never)
    assert verdict.status == FAIL
    assert verdict.call == "double(3)"
    assert "no answer within 0.3 s" in verdict.got


def test_a_check_that_takes_too_long_is_our_fault() -> None:
    def slow(trial: Trial) -> None:
        while True:
            pass

    assert judged(slow).status == OUR_FAULT


def test_what_an_answer_prints_does_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(asks, double=lambda x: print("6")).got == "None"
    assert capsys.readouterr().out == ""


def test_an_error_that_has_to_be_raised() -> None:
    def asks_for_one(trial: Trial) -> None:
        trial.raises("double", -1, error=ValueError)

    assert judged(asks_for_one, double=[].index).status == PASS
    assert judged(asks_for_one, double=lambda x: x).got == "-1"
    assert judged(asks_for_one, double=lambda x: 1 / 0).got.startswith("ZeroDivisionError")


def test_questions_come_from_the_seed_alone() -> None:
    drawn: list[float] = []
    for _ in range(2):
        random.seed()
        judged(lambda trial: drawn.append(trial.rng.random()))
    assert drawn[0] == drawn[1]


def test_output_without_an_end_takes_no_memory() -> None:
    assert judged(asks, double=lambda x: [print("x" * 10_000) for _ in range(1000)] and 6).status == PASS


def keeps(trial: Trial) -> None:
    trial.keeps("ordered", 1, [3, 2], expected="the list as it was", hint="Sort a copy.")


def test_what_is_handed_over_has_to_stay_as_it_was():
    assert judged(keeps, ordered=lambda _, given: sorted(given)).status == PASS
    found = judged(keeps, ordered=lambda _, given: given.sort())
    assert (found.status, found.call) == (FAIL, "ordered(1, [3, 2])")
    assert (found.expected, found.got, found.hint) == ("the list as it was", "[2, 3]", "Sort a copy.")
    assert judged(keeps, ordered=lambda _, given: given.append(Odd())).status == FAIL
