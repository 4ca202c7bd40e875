"""A tape says the truth about its step: order, lifetimes, kinds of memory, frozen values. Shown on random programs."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import onelaunch
from onelaunch import emulator
from onelaunch.tape import Buffer, PythonExecutor, Tape, TensorRef
from onelaunch.tape.source import Source

Program = list[tuple[str, int, int]]
ROWS = torch.tensor([2, 0])


def add(live: list[Tensor], a: Tensor, b: Tensor) -> None:
    live.append(a + b)


def transpose(live: list[Tensor], a: Tensor, b: Tensor) -> None:
    live.append(a.t())


def halve_in_place(live: list[Tensor], a: Tensor, b: Tensor) -> None:
    a.mul_(0.5)


def copy_rows(live: list[Tensor], a: Tensor, b: Tensor) -> None:
    a[1:3] = b[:2].clone()


def copy_column(live: list[Tensor], a: Tensor, b: Tensor) -> None:
    a[:, 1] = (b + 1)[:, 2]


def window_of_a_larger_one(live: list[Tensor], a: Tensor, b: Tensor) -> None:
    live.append(torch.cat([a, b] * 20)[3:7])


def through_another_dtype(live: list[Tensor], a: Tensor, b: Tensor) -> None:
    live.append((a.double() * b).float())


def several_outputs(live: list[Tensor], a: Tensor, b: Tensor) -> None:
    values, order = (a - b).sort(dim=1)
    live.append(values.gather(1, order.flip(1)))


def put_rows(live: list[Tensor], a: Tensor, b: Tensor) -> None:
    live[2].index_copy_(0, ROWS, (a * b)[:2])


def drop(live: list[Tensor], a: Tensor, b: Tensor) -> None:
    if len(live) > 3:
        live.pop()


ACTIONS = {
    action.__name__: action
    for action in (
        add,
        transpose,
        halve_in_place,
        copy_rows,
        copy_column,
        window_of_a_larger_one,
        through_another_dtype,
        several_outputs,
        put_rows,
        drop,
    )
}
programs = st.lists(st.tuples(st.sampled_from(sorted(ACTIONS)), st.integers(0, 30), st.integers(0, 30)), max_size=25)


def captured(program: Program) -> tuple[Tape, list[Tensor], list[Tensor]]:
    """The tape of a program over two inputs and a state ``[4, 4]``, these three, and what is still alive at its end."""
    given_ = [torch.randn(4, 4, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]

    def step() -> list[Tensor]:
        live = list(given_)
        for name, a, b in program:
            ACTIONS[name](live, live[a % len(live)], live[b % len(live)])
        return live

    g = emulator.CUDAGraph(keep_graph=True)
    with emulator.graph(g):
        live = step()
    assert g.tape is not None
    return g.tape, given_, live


def bytes_of(tape: Tape, ref: TensorRef) -> range:
    """Addresses from the first to the last byte of a view, and all between."""
    start, end = ref.span
    address = tape.buffers[ref.buffer].address
    return range(address + start, address + end)


def overlap(a: range, b: range) -> bool:
    return a.start < b.stop and b.start < a.stop and len(a) > 0 and len(b) > 0


def closure(edges: list[set[int]]) -> list[set[int]]:
    """All earlier kernels that each comes after, by way of others too."""
    reached: list[set[int]] = []
    for before in edges:
        reached.append(before.union(*(reached[i] for i in before)) if before else set())
    return reached


def conflicts(tape: Tape) -> list[set[int]]:
    """Every pair of kernels that meet in memory which one of the two writes, found the slow way."""
    reads = [[bytes_of(tape, ref) for ref in kernel.reads] for kernel in tape.kernels]
    writes = [[bytes_of(tape, ref) for ref in kernel.writes] for kernel in tape.kernels]

    def meet(some: list[range], others: list[range]) -> bool:
        return any(overlap(a, b) for a in some for b in others)

    return [
        {i for i in range(j) if meet(writes[i], writes[j]) or meet(writes[i], reads[j]) or meet(reads[i], writes[j])}
        for j in range(len(tape.kernels))
    ]


@settings(max_examples=100, deadline=None)
@given(programs)
def test_the_dag_implies_every_conflict_and_nothing_else(program: Program) -> None:
    tape, _, _ = captured(program)
    dag = [set(before) for before in tape.dag()]
    expected = conflicts(tape)
    assert all(found <= needed for found, needed in zip(dag, expected, strict=True))
    assert closure(dag) == closure(expected)


@settings(max_examples=100, deadline=None)
@given(programs, st.randoms(use_true_random=False))
def test_any_order_that_respects_the_dag_gives_the_same_bits(program: Program, choose: random.Random) -> None:
    tape, given_, live = captured(program)
    start = [tensor.clone() for tensor in given_]
    waiting = {kernel: set(before) for kernel, before in enumerate(tape.dag())}
    order: list[int] = []
    while waiting:
        order.append(choose.choice([kernel for kernel, before in waiting.items() if not before]))
        del waiting[order[-1]]
        for before in waiting.values():
            before.discard(order[-1])

    def run(kernels: list[int]) -> list[Tensor]:
        for tensor, value in zip(given_, start, strict=True):
            tensor.copy_(value)
        PythonExecutor(Tape([tape.kernels[i] for i in kernels], tape.buffers, tape.pool)).run()
        return [tensor.contiguous().view(torch.int32).clone() for tensor in live]

    in_order, shuffled = run(sorted(order)), run(order)
    assert all(torch.equal(a, b) for a, b in zip(in_order, shuffled, strict=True))


def rounded(buffer: Buffer) -> int:
    return max(512, -(-buffer.nbytes // 512) * 512)


@settings(max_examples=100, deadline=None)
@given(programs)
def test_no_two_buffers_share_an_address_while_both_live(program: Program) -> None:
    tape, _, live = captured(program)
    own = [buffer for buffer in tape.buffers if not buffer.outside]
    end = len(tape.kernels)
    lives = [range(b.first_use or 0, end if b.freed is None else b.freed) for b in own]
    for i, a in enumerate(own):
        for j, b in enumerate(own[:i]):
            if overlap(lives[i], lives[j]):
                assert not overlap(range(a.address, a.address + a.nbytes), range(b.address, b.address + b.nbytes))
    # The pool's own figures, from the lifetimes alone.
    used = [sum(rounded(b) for b, life in zip(own, lives, strict=True) if kernel in life) for kernel in range(end)]
    assert tape.pool.peak_bytes == max(used, default=0)
    assert tape.pool.naive_bytes == sum(map(rounded, own))
    storages = {tensor.untyped_storage().data_ptr() for tensor in live}
    for buffer in own:
        assert buffer.first_use is not None
        assert buffer.last_use is not None
        assert (buffer.kind == "output") == (buffer.freed is None)
        if buffer.kind == "output":
            assert buffer.address in storages
        else:
            assert buffer.first_use <= buffer.last_use < buffer.freed  # type: ignore[operator]


def recorded(step: Callable[[], Any]) -> tuple[Tape, Any]:
    g = emulator.CUDAGraph()
    with emulator.graph(g):
        out = step()
    assert g.tape is not None
    return g.tape, out


def test_each_kind_of_buffer_is_told_apart() -> None:
    layer, x, state, kept = nn.Linear(4, 4), torch.ones(2, 4), torch.zeros(2, 4), {}

    @torch.no_grad()
    def step() -> Tensor:
        hidden = layer(x) * torch.tensor(2.0)
        state.add_(hidden)
        kept["sum"] = hidden.sum()
        return state.relu()

    tape, out = recorded(step)
    kinds: dict[str, list[Buffer]] = {}
    for buffer in tape.buffers:
        kinds.setdefault(buffer.kind, []).append(buffer)
    assert {b.address for b in kinds["weight"]} == {layer.weight.data_ptr(), layer.bias.data_ptr()}
    assert [b.address for b in kinds["input"]] == [x.data_ptr()]
    assert [b.address for b in kinds["state"]] == [state.data_ptr()]
    assert [(b.size, b.nbytes) for b in kinds["constant"]] == [((), 4)]
    assert {b.address for b in kinds["output"]} == {out.data_ptr(), kept["sum"].data_ptr()}
    assert len(kinds["intermediate"]) == 2  # of the product and of the layer
    by_name = {kernel.name: kernel for kernel in tape.kernels}
    weights = {ref.buffer for ref in by_name["aten::addmm"].reads if tape.buffers[ref.buffer].kind == "weight"}
    assert len(weights) == 2  # the weight was met as a view, and is a weight all the same


def test_frozen_lists_every_plain_value_with_its_kernel_and_line() -> None:
    x = torch.randn(3, 4)
    scale, names = 0.25, ["dim", "keepdim"]

    def step() -> Tensor:
        y = x * scale
        y = y.clamp(-1.0, 1.0)
        y = y.sum(1, keepdim=True)
        return torch.add(y, y, alpha=3)

    tape, _ = recorded(step)
    line = step.__code__.co_firstlineno
    found = [(f.kernel, f.op, f.name, f.value, f.where.line - line, f.where.function) for f in tape.frozen()]
    assert found == [
        (0, "aten::mul.Tensor", "other", 0.25, 1, "step"),
        (1, "aten::clamp", "min", -1.0, 2, "step"),
        (1, "aten::clamp", "max", 1.0, 2, "step"),
        (2, "aten::sum.dim_IntList", "dim", [1], 3, "step"),
        (2, "aten::sum.dim_IntList", "keepdim", True, 3, "step"),
        (3, "aten::add.Tensor", "alpha", 3, 4, "step"),
    ]
    assert {f.where.file for f in tape.frozen()} == {__file__}
    assert names == [name for _, _, name, _, _, _ in found[3:5]]


def test_a_strided_view_is_kept_as_geometry_and_makes_no_kernel() -> None:
    x = torch.arange(24.0).view(4, 6)
    tape, out = recorded(lambda: x[1:, ::2].t().sum(0))
    assert [kernel.name for kernel in tape.kernels] == ["aten::sum.dim_IntList"]
    (read,) = tape.kernels[0].reads
    assert (read.size, read.stride, read.offset) == ((3, 3), (2, 6), 6)
    assert read.span == (24, 24 + 4 * (2 * 2 + 2 * 6 + 1))
    assert torch.equal(tape.tensor(read), x[1:, ::2].t())
    assert out.isnan().all()


def test_memory_that_two_tensors_share_outside_of_pytorch_orders_kernels_too() -> None:
    array = torch.zeros(16).numpy()
    whole, part = torch.from_numpy(array), torch.from_numpy(array[4:8])

    def step() -> None:
        part.fill_(1.0)
        whole.mul_(2.0)
        part.add_(1.0)

    tape, _ = recorded(step)
    assert tape.dag() == [(), (0,), (1,)]
    assert len(tape.buffers) == 2


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this PyTorch is built without oneDNN")
def test_a_packed_weight_counts_its_bytes() -> None:
    weight, x = torch.randn(32, 16), torch.randn(4, 16)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight)
    tape, _ = recorded(lambda: torch.ops.mkldnn._linear_pointwise.default(x, packed, None, "none", [], ""))
    (buffer,) = [buffer for buffer in tape.buffers if buffer.opaque is not None]
    assert (buffer.kind, buffer.nbytes, buffer.address) == ("weight", 32 * 16 * 4, 0)
    assert "1  weight, 2,048 bytes, 1 of them packed by oneDNN" in tape.summary()
    assert tape.dag() == [()]


def test_the_summary_counts_kernels_buffers_and_what_is_frozen() -> None:
    x = torch.randn(4, 4)
    tape, _ = recorded(lambda: ((x + 1) * 2 + 3).sum())
    assert tape.summary().splitlines() == [
        "4 kernels of 3 kinds",
        "      2  aten::add.Tensor",
        "      1  aten::mul.Tensor",
        "      1  aten::sum",
        "5 buffers",
        "      1  input, 64 bytes",
        "      3  intermediate, 192 bytes",
        "      1  output, 4 bytes",
        "pool: 1,024 bytes at the peak, 2,048 without reuse",
        "3 frozen values",
    ]


def test_a_line_of_the_package_is_named_from_the_package_on(monkeypatch, tmp_path):
    file = Path(onelaunch.__file__).parent / "models" / "layers.py"
    monkeypatch.chdir(tmp_path)
    assert str(Source(str(file), 7, "forward")) == f"{Path('onelaunch', 'models', 'layers.py')}:7"
