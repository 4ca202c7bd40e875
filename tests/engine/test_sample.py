"""Choosing tokens: the distribution is the one asked for, and the draws follow it."""

from __future__ import annotations

import pytest
import torch

from onelaunch import SamplingParams
from onelaunch.engine.core import Req
from onelaunch.engine.sample import probabilities, sample

LOGITS = torch.tensor([2.0, 1.0, 0.0, -1.0, 0.5])


def request(params: SamplingParams) -> Req:
    return Req(uid=0, input_ids=[0], max_device_len=10, sampling_params=params)


def test_temperature_divides_the_logits() -> None:
    got = probabilities(LOGITS, SamplingParams(temperature=0.5))
    torch.testing.assert_close(got, torch.softmax(LOGITS / 0.5, -1))


def test_top_k_keeps_the_likeliest() -> None:
    got = probabilities(LOGITS, SamplingParams(temperature=1.0, top_k=2))
    kept = torch.softmax(LOGITS[:2], -1)
    torch.testing.assert_close(got, torch.tensor([kept[0], kept[1], 0, 0, 0]))


@pytest.mark.parametrize(("top_p", "kept"), [(0.01, 1), (0.55, 1), (0.6, 2), (0.8, 3), (0.95, 4), (1.0, 5)])
def test_top_p_keeps_the_fewest_that_reach_it(top_p: float, kept: int) -> None:
    full = torch.softmax(LOGITS, -1).sort(descending=True).values
    assert full[:kept].sum() >= top_p > (full[: kept - 1].sum() if kept > 1 else 0)  # the table above is right
    got = probabilities(LOGITS, SamplingParams(temperature=1.0, top_p=top_p))
    assert int((got > 0).sum()) == kept
    torch.testing.assert_close(got.sum(), torch.tensor(1.0))


def test_top_p_applies_to_what_top_k_left() -> None:
    # Of the two likeliest, the first holds 0.73: enough for 0.7, though it holds only 0.56 of all.
    got = probabilities(LOGITS, SamplingParams(temperature=1.0, top_k=2, top_p=0.7))
    assert got.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("temperature", [1e-8, 1e-3, 1.0, 1e3, 1e30])
def test_no_temperature_gives_nan(temperature: float) -> None:
    got = probabilities(LOGITS * 30, SamplingParams(temperature=temperature, top_p=0.9))
    assert torch.isfinite(got).all()


def test_equal_logits_at_the_edge_of_top_k_keep_exactly_k() -> None:
    got = probabilities(torch.zeros(6), SamplingParams(temperature=1.0, top_k=3))
    assert int((got > 0).sum()) == 3


def test_draws_follow_the_distribution() -> None:
    params = SamplingParams(temperature=1.0, top_k=4, seed=0)
    req = request(params)
    counts = torch.zeros(5)
    for _ in range(4000):
        counts[sample(LOGITS[None], [req])[0]] += 1
    torch.testing.assert_close(counts / 4000, probabilities(LOGITS, params), atol=0.03, rtol=0)


def test_greedy_and_sampled_requests_share_a_batch() -> None:
    greedy, drawn = request(SamplingParams()), request(SamplingParams(temperature=1.0, seed=3))
    tokens = sample(LOGITS.repeat(2, 1), [greedy, drawn])
    assert tokens[0] == 0
    assert tokens[1] == sample(LOGITS[None], [request(SamplingParams(temperature=1.0, seed=3))])[0]
