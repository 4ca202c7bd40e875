"""Bytes and operations of a tape's kernels."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from onelaunch.engine.shapes import SHAPES, decode_tapes
from onelaunch.tape import Tape, record_shapes
from onelaunch.timeline import Efficiency, Hardware, KernelCost, kernel_costs, time_us
from onelaunch.timeline.fusion import fused_costs

LLAMA_8B = SHAPES["meta-llama/Meta-Llama-3-8B"]
TWO_LAYERS = replace(LLAMA_8B, num_hidden_layers=2)


def cost_of(step: Callable[..., Tensor], *shapes: tuple[int, ...], dtype: torch.dtype = torch.float16) -> KernelCost:
    """The only kernel of ``step``, which is given tensors of these shapes."""

    def build() -> Callable[[], Tensor]:
        tensors = [torch.empty(shape, dtype=dtype) for shape in shapes]
        return lambda: step(*tensors)

    (cost,) = kernel_costs(record_shapes(build))
    return cost


def test_a_product_costs_2mnk_operations_and_moves_each_matrix_once() -> None:
    cost = cost_of(lambda a, b: a @ b, (8, 64), (64, 32))
    assert (cost.kind, cost.rate) == ("matmul", "fp16")
    assert cost.operations == 2 * 8 * 64 * 32
    assert cost.bytes == 2 * (8 * 64 + 64 * 32 + 8 * 32)
    added = cost_of(lambda bias, a, b: torch.addmm(bias, a, b), (32,), (8, 64), (64, 32))
    assert added.operations == cost.operations
    assert added.bytes == cost.bytes + 64
    batched = cost_of(lambda a, b: torch.bmm(a, b), (3, 8, 64), (3, 64, 32))
    assert batched.operations == 3 * cost.operations
    assert batched.bytes == 3 * cost.bytes
    vector = cost_of(lambda a, b: torch.mv(a, b), (8, 64), (64,))
    assert vector.operations == 2 * 8 * 64


def test_a_product_in_float32_runs_at_the_plain_rate() -> None:
    assert cost_of(lambda a, b: a @ b, (8, 64), (64, 32), dtype=torch.float32).rate == "fp32"


def test_views_are_free_and_what_is_repeated_is_read_once() -> None:
    cost = cost_of(lambda a, b: a.view(4, 16).transpose(0, 1)[2:] + b.expand(14, 4), (8, 8), (4,))
    assert cost.bytes == 2 * (14 * 4 + 4 + 14 * 4)
    assert cost.operations == 14 * 4


@pytest.mark.parametrize(
    "step",
    [
        lambda table, index, rows: table.index_select(0, index),
        lambda table, index, rows: table[index],
        lambda table, index, rows: torch.nn.functional.embedding(index, table),
        lambda table, index, rows: table.index_copy_(0, index, rows),
        lambda table, index, rows: table.index_put_((index,), rows),
    ],
)
def test_a_gather_reads_what_it_gathers_and_a_scatter_writes_rows(step: Callable[..., Tensor]) -> None:
    def build() -> Callable[[], Tensor]:
        index, rows = torch.zeros(4, dtype=torch.int64), torch.empty(4, 16, dtype=torch.float16)
        table = torch.empty(100_000, 16, dtype=torch.float16)
        return lambda: step(table, index, rows)

    (cost,) = kernel_costs(record_shapes(build))
    assert (cost.kind, cost.bytes) == ("gather", 2 * 4 * 16 * 2 + 4 * 8)


@pytest.fixture(scope="module")
def tape() -> Tape:
    return decode_tapes(TWO_LAYERS, [8], max_seq_len=1024)[8]


def test_a_step_reads_every_weight_once(tape: Tape) -> None:
    weights = sum(cost.bytes for cost in kernel_costs(tape) if cost.kind == "matmul")
    hidden, inner = LLAMA_8B.hidden_size, LLAMA_8B.intermediate_size
    layer = hidden * (4096 + 2 * 1024) + 4096 * hidden + 3 * hidden * inner
    expected = 2 * (2 * layer + hidden * LLAMA_8B.vocab_size)
    assert expected < weights < 1.005 * expected  # and a few activations


def test_the_gather_backend_reads_the_maximum_and_a_paged_one_the_true_length(tape: Tape) -> None:
    recorded = kernel_costs(tape)
    one_copy = 2 * 2 * 8 * 1024 * 8 * 128 * 2  # k and v, layers, requests, tokens, heads, channels, bytes
    read = sum(cost.bytes for cost in recorded if cost.kind == "attention")
    copied = sum(cost.bytes for cost in recorded if cost.name == "aten::index_select" and cost.bytes > 10**6)
    assert one_copy < read < 1.01 * one_copy
    assert 2 * one_copy < copied < 2.01 * one_copy  # read and written
    paged = kernel_costs(tape, context_len=256)
    assert sum(cost.bytes for cost in paged if cost.kind == "attention") == pytest.approx(one_copy / 4, rel=0.02)
    assert not any("where" in cost.name or "index_select" in cost.name for cost in paged[2:])  # two are the rotation's
    assert [cost for cost in paged if cost.kind == "matmul"] == [cost for cost in recorded if cost.kind == "matmul"]


def test_fused_and_unfused_read_the_same_weights_and_cache(tape: Tape) -> None:
    for kind in ("matmul", "attention"):
        fused = [c for c in fused_costs(TWO_LAYERS, 8, 256) if c.kind == kind]
        unfused = [c for c in kernel_costs(tape, context_len=256) if c.kind == kind]
        assert [c.bytes for c in fused] == [c.bytes for c in unfused]
        assert [c.operations for c in fused] == [c.operations for c in unfused]
    assert len(fused_costs(TWO_LAYERS, 8, 256)) < len(kernel_costs(tape, context_len=256)) / 3


def test_time_is_the_slower_of_bytes_and_operations_and_never_below_the_floor() -> None:
    gpu = Hardware("round", 1, memory_gb_s=1000, fp16_tflops=100, bf16_tflops=100, fp32_tflops=10, sms=1, l2_mb=1)
    ideal = Efficiency(memory=1, compute=1, floor_us=2)
    bytes_bound = KernelCost("a", "matmul", bytes=10**7, operations=10**8, rate="fp16")
    assert time_us(bytes_bound, gpu, ideal) == 10
    assert time_us(replace(bytes_bound, operations=10**10), gpu, ideal) == 100
    assert time_us(replace(bytes_bound, operations=10**9, rate="fp32"), gpu, ideal) == 100
    assert time_us(replace(bytes_bound, bytes=1), gpu, ideal) == 2
    assert time_us(bytes_bound, gpu, Efficiency(memory=0.5, compute=1, added_us=3)) == 23
    assert time_us(replace(bytes_bound, extra_us=7), gpu, ideal) == 17
    with pytest.raises(ValueError, match="at most 1"):
        Efficiency(memory=1.2)


def test_paged_attention_keeps_results_that_nobody_reads_and_what_was_written_in_place() -> None:
    def build() -> Callable[[], object]:
        q, k, v = (torch.empty(2, 4, tokens, 8) for tokens in (1, 64, 64))
        index, seen = torch.zeros(64, dtype=torch.int64), []

        def step() -> Tensor:
            keys, values = (memory.index_select(2, index) for memory in (k, v))
            seen.append(keys)  # a result that only attention reads
            out = torch.nn.functional.scaled_dot_product_attention(q + 1, keys, values)
            return out.mul_(2)

        return step

    tape = record_shapes(build)
    paged = [cost.name for cost in kernel_costs(tape, context_len=10)]
    assert len(tape.kernels) == len(paged) + 2
    assert not any("index_select" in name for name in paged)
    assert any("mul_" in name for name in paged)
    with pytest.raises(ValueError, match="at least 1"):
        kernel_costs(tape, context_len=0)
