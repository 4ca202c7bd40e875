"""Every exercise: its stub scores nothing, right answers pass, and each wrong one fails at the check that it names."""

from __future__ import annotations

from collections import Counter

import pytest
from variants import Variant, judge, variants

import exercises
from onelaunch.grading import checks
from onelaunch.grading.base import FAIL, NOT_STARTED, PASS
from project import repository

KEYS = checks.keys()
SEEDS = range(20)
ALTERNATIVES, MUTANTS = variants("alternatives"), variants("mutants")


def named(variant: Variant) -> str:
    return variant.path.stem


@pytest.mark.parametrize("key", KEYS)
def test_a_stub_is_not_started(key: str) -> None:
    assert {verdict.status for verdict in judge(key, stubs=True)} == {NOT_STARTED}


@pytest.mark.parametrize("key", KEYS)
def test_the_reference_passes_with_every_seed(key: str) -> None:
    for seed in SEEDS[: 3 if checks.load(key).heavy else None]:
        assert [v.text() for v in judge(key, seed=seed) if v.status != PASS] == [], f"seed {seed}"


@pytest.mark.parametrize("variant", ALTERNATIVES, ids=named)
def test_another_right_answer_passes(variant: Variant) -> None:
    assert [v.text() for v in judge(variant.key, variant.answers) if v.status != PASS] == []


@pytest.mark.parametrize("variant", MUTANTS, ids=named)
def test_a_wrong_answer_fails_first_at_the_check_that_it_names(variant: Variant) -> None:
    for seed in SEEDS[: 1 if checks.load(variant.key).heavy else 5]:
        *before, named = judge(variant.key, variant.answers, seed=seed, upto=variant.fails)
        assert [verdict.text() for verdict in before if verdict.status != PASS] == []
        assert named.status == FAIL, named.text()
        assert named.got
        assert named.hint


@pytest.mark.parametrize("key", KEYS)
def test_there_are_enough_of_each(key: str) -> None:
    exercise = checks.load(key)
    assert 3 <= len(exercise.checks) <= 6
    assert sum(variant.key == key for variant in ALTERNATIVES) >= 2
    fails = Counter(variant.fails for variant in MUTANTS if variant.key == key)
    assert fails.total() >= 6
    assert set(fails) == set(range(1, len(exercise.checks) + 1)), "a check that no wrong answer fails checks nothing"
    for check in exercise.checks:
        assert len(set(check.hints)) == 3
        assert all(hint.strip() for hint in check.hints)


def test_a_learners_notebook_differs_from_the_solution_in_its_answer_cells_alone() -> None:
    for source in exercises.sources():
        built = exercises.build_one(source, repository())
        assert exercises.differences(built.solution, built.learner) == []


def test_every_source_has_checks_and_every_check_a_source() -> None:
    assert [source.stem[:4] for source in exercises.sources()] == KEYS
