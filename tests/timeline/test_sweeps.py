"""Sweeps: gains over batches, padding, break-even."""

import math
from dataclasses import replace

import pytest

from onelaunch.engine.shapes import decode_tapes
from onelaunch.models.shapes import SHAPES
from onelaunch.timeline import kernel_costs, lay_out
from onelaunch.timeline.published import engine_parameters
from onelaunch.timeline.sweeps import break_even_steps, gains, padding
from onelaunch.timeline.tapes import tape_costs

LLAMA_8B = SHAPES["meta-llama/Meta-Llama-3-8B"]
SETUP = engine_parameters("vLLM, SGLang").on(replace(LLAMA_8B, num_hidden_layers=8), "H100")


def test_the_gain_falls_as_the_batch_grows() -> None:
    found = gains(SETUP, [1, 8, 64, 256], [2000])
    speedups = [gain.speedup for gain in found]
    assert [gain.batch for gain in found] == [1, 8, 64, 256]
    assert speedups == sorted(speedups, reverse=True)
    assert speedups[0] > 1.3 > speedups[-1] >= 1


def test_a_longer_context_takes_longer_and_gains_less() -> None:
    short, long = gains(SETUP, [64], [100, 10_000])
    assert long.graph.step_us > short.graph.step_us
    assert long.speedup < short.speedup


def test_padding_costs_less_than_its_rows_and_less_than_eager() -> None:
    found = padding(SETUP, 37, 48, 1000)
    assert 0 <= found.extra < 48 / 37 - 1
    assert found.padded.step_us < found.eager.step_us
    assert padding(SETUP, 48, 48, 1000).extra == 0
    with pytest.raises(ValueError, match="does not fit"):
        padding(SETUP, 49, 48, 1000)


def test_a_capture_breaks_even_when_it_saved_what_it_took() -> None:
    eager, graph = lay_out([("k", 1.0)] * 100), lay_out([("k", 1.0)] * 100, "graph")
    steps = break_even_steps(1e6, eager, graph)
    assert steps * (eager.step_us - graph.step_us) >= 1e6 > (steps - 1) * (eager.step_us - graph.step_us)
    assert break_even_steps(1.0, graph, graph) == math.inf
    with pytest.raises(ValueError, match="negative"):
        break_even_steps(-1, eager, graph)


@pytest.mark.parametrize("context_len", [None, 50])
def test_repeating_a_layer_gives_what_recording_all_gives(context_len: int | None) -> None:
    small = replace(LLAMA_8B, hidden_size=256, intermediate_size=512, vocab_size=1000, num_hidden_layers=5)
    small = replace(small, num_attention_heads=8, num_key_value_heads=2, head_dim=32)
    whole = kernel_costs(decode_tapes(small, [4], max_seq_len=64)[4], context_len)
    assert list(tape_costs(small, 4, max_seq_len=64, context_len=context_len)) == whole
